"""DDL (2019): its gradients are those of finite differences, the loss falls, and easy classes are recognised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet
from sklearn.preprocessing import normalize

from ddlcn.baselines import DDL, DDL2019
from ddlcn.baselines.deep_network import Adam, Network, make_system, pull_back, start_network, train_network


def make_classes(n=60, m=20, n_classes=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return normalize(rng.normal(size=(n_classes, m))[y] + noise * rng.normal(size=(n, m))), y


def code_exactly(Y, D, alpha, mu):
    """Codes by scikit-learn, (n, K)."""
    model = ElasticNet(1.0, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
    m = Y.shape[1]
    model.set_params(alpha=(alpha + mu) / m, l1_ratio=alpha / (alpha + mu))
    return np.stack([model.fit(D.T, row).coef_ for row in Y])


def test_the_gradient_of_a_layer_is_that_of_differences():
    rng = np.random.default_rng(0)
    Y, D, weights = make_classes(5, 8)[0], normalize(rng.normal(size=(12, 8))), rng.normal(size=(5, 12))
    alpha, mu, step = 0.05, 0.1, 1e-5
    Z = code_exactly(Y, D, alpha, mu)
    assert 0.1 < (Z != 0).mean() < 0.9
    in_atoms, in_input = pull_back(Y, D, Z, make_system(D, mu), weights)
    for _ in range(10):
        way, way_in = rng.normal(size=D.shape), rng.normal(size=Y.shape)
        ahead, back = ((code_exactly(Y, D + s * way, alpha, mu) * weights).sum() for s in (step, -step))
        assert (ahead - back) / (2 * step) == pytest.approx((in_atoms * way).sum(), rel=1e-3, abs=1e-3)
        ahead, back = ((code_exactly(Y + s * way_in, D, alpha, mu) * weights).sum() for s in (step, -step))
        assert (ahead - back) / (2 * step) == pytest.approx((in_input * way_in).sum(), rel=1e-3, abs=1e-3)


def test_a_small_step_against_the_gradient_lowers_the_loss():
    Y, y = make_classes(noise=1.5)
    H = np.eye(3)[y]
    for layer in range(4):  # two dictionaries, V, b
        network = start_network(Y, y, 4, [0.01, 0.01], 0.05, 1)
        codes = [np.zeros((60, len(D))) for D in network.dictionaries]
        before, gradients = network.differentiate(Y, H, codes, 1e-3)
        network.arrays[layer][...] -= 1e-3 / np.linalg.norm(gradients[layer]) * gradients[layer]
        after, _ = network.differentiate(Y, H, [np.zeros_like(Z) for Z in codes], 1e-3)
        expected = 1e-3 * np.linalg.norm(gradients[layer])
        assert before - after == pytest.approx(expected, rel=0.2), layer


def test_where_coding_starts_does_not_matter():
    Y, y = make_classes(20)
    network = start_network(Y, y, 3, [0.01], 0.1, 1)
    cold, warm = np.zeros((20, 9)), np.random.default_rng(0).normal(size=(20, 9))
    losses = [network.differentiate(Y, np.eye(3)[y], [Z], 0.0)[0] for Z in (cold, warm)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_heavy_penalty_leaves_no_codes_and_no_nans():
    Y, y = make_classes(20)
    network = Network([normalize(Y[:5])], np.ones((3, 5)), np.zeros(3), [10.0], 0.1)
    loss, gradients = network.differentiate(Y, np.eye(3)[y], [np.zeros((20, 5))], 0.0)
    assert loss == pytest.approx(np.log(3))
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert not gradients[0].any()


def test_adam_finds_the_middle_of_a_bowl():
    x, aim = np.zeros(3), np.array([1.0, -2.0, 0.5])
    optimiser = Adam([x], 0.05)
    for _ in range(500):
        optimiser.step([2 * (x - aim)])
    np.testing.assert_allclose(x, aim, atol=1e-3)


def test_training_lowers_the_loss_and_keeps_atoms_in_the_ball():
    Y, y = make_classes(noise=1.0)
    network = start_network(Y, y, 4, [0.01, 0.01], 0.05, 1)
    before = [D.copy() for D in network.dictionaries]
    losses = train_network(network, Y, np.eye(3)[y], 20, 16, 0.003, 1e-4, np.random.default_rng(0))
    assert losses[-1] < 0.8 * losses[0]
    for D, old in zip(network.dictionaries, before, strict=True):
        assert np.linalg.norm(D, axis=1).max() < 1 + 1e-9
        assert np.abs(D - old).max() > 1e-3


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_recognises_easy_classes(n_layers):
    X, y = make_classes(80, 30, 5)
    model = DDL2019(n_layers, 4, random_state=0).fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) > 0.95
    assert [D.shape for D in model.dictionaries_] == [(20, 30), (20, 20), (20, 20)][:n_layers]
    assert not isinstance(model, DDL)


def test_without_epochs_the_start_is_kept():
    X, y = make_classes()
    model = DDL2019(n_epochs=0).fit(X, y)
    assert model.losses_.shape == (0,)
    assert not model.intercept_.any()


def test_one_image_per_class_and_a_black_one():
    X = np.vstack([np.random.default_rng(0).normal(size=(3, 6)), np.zeros((1, 6))])
    model = DDL2019(random_state=0).fit(X, list("abcd"))
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X[:3]) == list("abc")).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_layers": 0},
        {"alpha": 0},
        {"alpha": (1, 2, 3)},
        {"mu": 0},
        {"n_epochs": -1},
        {"learning_rate": 0},
        {"decay": 0},
    ],
)
def test_says_what_is_wrong(wrong):
    X, y = make_classes()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DDL2019(**wrong).fit(X, y)

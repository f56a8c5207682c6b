"""NDL and SNDL: the gradient is the derivative, no round raises the objective, without a network they are linear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from ddlcn.baselines.class_dictionaries import code_images
from ddlcn.baselines.fisher import FDDL
from ddlcn.baselines.nonlinear import NDL, SNDL
from ddlcn.baselines.nonlinear_network import (
    embed,
    fit_decoder,
    measure_network,
    run_network,
    start_network,
    step_network,
)

Array = NDArray[Any]
SMALL: dict[str, Any] = {"hidden": (12, 8), "atoms_per_class": 3, "random_state": 0}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def make_curves(n_per_class: int, seed: int = 0) -> Any:
    """Rows (n, 30) on one arc of a circle per class, the circles in planes of their own, plus noise; and classes."""
    planes = np.random.default_rng(7).normal(size=(4, 3, 30))  # `seed` draws the points
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), n_per_class)
    angle = rng.uniform(0, 2, len(y))
    points = np.stack([np.cos(angle), np.sin(angle), np.ones(len(y))], axis=1)
    return np.einsum("nk,nkm->nm", points, planes[y]) + 0.2 * rng.normal(size=(len(y), 30)), y


@pytest.fixture
def problem() -> Any:
    """Images, a network that is far from its start, targets of its output, and a decoder."""
    rng = np.random.default_rng(3)
    X = normalize(make_curves(5)[0])
    layers = [(W + 0.3 * rng.normal(size=W.shape), b) for W, b in start_network(X, (9, 6), 1.0)]
    return X, layers, rng.normal(size=(len(X), 6)), rng.normal(size=(6, 30))


def test_gradient_is_the_derivative(problem):
    X, layers, T, G = problem
    weights = {"weight": 2.0, "mu": 0.7, "nu": 0.1}
    _, gradient = measure_network(X, layers, T, G=G, **weights)
    rng = np.random.default_rng(0)
    for layer, (W, b) in enumerate(layers):
        for part, slope in zip((W, b), gradient[layer], strict=True):
            for _ in range(5):
                place = tuple(rng.integers(part.shape))
                kept, values = part[place], []
                for change in (1e-6, -1e-6):
                    part[place] = kept + change
                    values.append(measure_network(X, layers, T, G=G, **weights)[0])
                part[place] = kept
                assert slope[place] == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_a_step_lowers_what_it_is_told_to(problem):
    X, layers, T, G = problem
    before = measure_network(X, layers, T, 1.0, G, 0.5, 0.01)[0]
    after = measure_network(X, step_network(X, layers, T, 1.0, G, 0.5, 0.01, 5), T, 1.0, G, 0.5, 0.01)[0]
    assert after < 0.95 * before


def test_decoder_is_ridge_regression(problem):
    X, layers, _, _ = problem
    F = embed(X, layers)
    stacked = np.vstack([np.sqrt(0.5) * F, np.sqrt(0.1) * np.eye(6)])
    expected = np.linalg.lstsq(stacked, np.vstack([np.sqrt(0.5) * X, np.zeros((6, 30))]), rcond=None)[0]
    np.testing.assert_allclose(fit_decoder(F, X, 0.5, 0.1), expected, atol=1e-10)


def test_network_starts_almost_linear():
    """With a small gain it is a projection on principal components, and keeps the angles between centred images."""
    X = normalize(make_curves(6)[0])
    centred = X - X.mean(axis=0)
    out = run_network(X, start_network(X, (23,), 1e-3))[-1]
    np.testing.assert_allclose(normalize(out) @ normalize(out).T, normalize(centred) @ normalize(centred).T, atol=1e-4)
    assert np.abs(run_network(X, start_network(X, (23,), 3.0))[-1]).max() > 0.9


@pytest.mark.parametrize("Method", [NDL, SNDL])
def test_no_round_raises_the_objective(Method):
    X, y = make_curves(10)
    model = Method(**SMALL, alpha=0.02, max_iter=12).fit(X, y)
    assert len(model.objective_) == 12
    assert (np.diff(model.objective_) <= 1e-6 * model.objective_[:-1]).all()
    assert model.objective_[-1] < 0.9 * model.objective_[0]
    assert np.linalg.norm(model.dictionary_, axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(np.linalg.norm(embed(normalize(X), model.layers_), axis=1), 1)


@pytest.mark.parametrize("Method", [NDL, SNDL])
def test_objective_is_that_of_the_file(Method):
    """From the fitted parts alone, image by image."""
    X, y = make_curves(6)
    y = y[np.random.default_rng(0).permutation(len(y))]
    model = Method(**SMALL, alpha=0.05, mu=0.4, nu=0.01, max_iter=3).fit(X, y)
    F, D, labels = embed(normalize(X), model.layers_), model.dictionary_, model.atom_labels_
    Z = model._code(F, y, D, np.zeros((len(X), len(D))))
    total = 0.05 * np.abs(Z).sum()
    for f, c, z in zip(F, y, Z, strict=True):
        total += ((f - z @ D) ** 2).sum() / 2
        if Method is SNDL:
            parts = [z[labels == j] @ D[labels == j] for j in range(4)]
            total += ((f - parts[c]) ** 2).sum() / 2
            total += sum((part**2).sum() for j, part in enumerate(parts) if j != c) / 2
    assert model._measure(F, y, D, Z) == pytest.approx(total)
    # Refitted, the decoder can only be better than the one of the last round.
    G = fit_decoder(F, normalize(X), 0.4, 0.01)
    total += 0.4 / 2 * ((normalize(X) - F @ G) ** 2).sum()
    total += 0.01 / 2 * ((G**2).sum() + sum((W**2).sum() for W, _ in model.layers_))
    assert 0.98 * model.objective_[-1] <= total <= model.objective_[-1] * (1 + 1e-6)


def test_without_hidden_layers_it_is_sparse_coding():
    X, y = make_curves(10)
    model = NDL(hidden=(), atoms_per_class=3, random_state=0).fit(X, y)
    assert model.layers_ == []
    F, Z = model._encode(normalize(X))
    np.testing.assert_allclose(F, normalize(X))
    D = model.dictionary_
    np.testing.assert_array_equal(Z, code_images(D @ D.T, F @ D.T, model.alpha, 1))
    assert (np.diff(model.objective_) <= 1e-6 * model.objective_[:-1]).all()


def test_supervised_without_hidden_layers_is_fddl_without_the_fisher_term():
    X, y = make_curves(10)
    ours = SNDL(hidden=(), atoms_per_class=3, alpha=0.01, max_iter=6).fit(X, y)
    fddl = FDDL(3, lambda1=0.01, lambda2=0.0, gamma=0.01, weight=0.0, max_iter=6, tol=0.0).fit(X, y)
    np.testing.assert_allclose(ours.dictionary_, fddl.dictionary_, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), fddl.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("Method", [NDL, SNDL])
def test_recognises_curves_and_does_not_see_brightness(Method):
    X, y = make_curves(25)
    new, y_true = make_curves(25, seed=1)
    names = np.array(["a", "b", "c", "d"])
    model = Method(**SMALL).fit(X, names[y])
    assert (model.predict(new) == names[y_true]).mean() >= 0.95
    np.testing.assert_allclose(model.decision_function(3 * new), model.decision_function(new), atol=1e-8)
    again = clone(model).fit(X, names[y]).decision_function(new)
    np.testing.assert_array_equal(model.decision_function(new), again)


@pytest.mark.parametrize("Method", [NDL, SNDL])
def test_the_decoder_keeps_images_apart(Method):
    """Without it the network may map the images closer to one point: the codes cost less."""
    X, y = make_curves(10)
    spread = []
    for mu in (0.0, 10.0):
        model = Method(**SMALL, mu=mu, max_iter=15, alpha=0.1).fit(X, y)
        F = embed(normalize(X), model.layers_)
        members = np.concatenate([F[y == c] - F[y == c].mean(axis=0) for c in range(4)])
        spread.append((members**2).sum())
    assert spread[0] < 0.8 * spread[1]


@pytest.mark.parametrize("Method", [NDL, SNDL])
def test_few_equal_and_black_images(Method):
    X, y = make_curves(1)
    assert (Method(random_state=0).fit(X, y).predict(X) == y).all()
    assert np.isfinite(Method(random_state=0).fit(X[:2], y[:2]).decision_function(X)).all()
    black = np.concatenate([X, np.zeros((2, X.shape[1]))])
    model = Method(random_state=0).fit(black, [0, 1, 0, 1, 0, 1])
    assert np.isfinite(model.decision_function(black)).all()
    assert np.isfinite(Method(random_state=0).fit(np.ones((4, 3)), [0, 1, 0, 1]).decision_function(black[:, :3])).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden": 5},
        {"hidden": (0,)},
        {"atoms_per_class": 0},
        {"alpha": 0},
        {"mu": -1},
        {"nu": 0},
        {"gain": 0},
        {"C": 0},
        {"max_iter": 0},
        {"n_steps": 0},
    ],
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NDL(**wrong).fit(*make_curves(2))

"""MDDL: codes solve their system, each layer's objective falls, and easy classes are recognised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from ddlcn.baselines import MDDL
from ddlcn.baselines.class_dictionaries import start_dictionary
from ddlcn.baselines.multi_layer import (
    RIDGE,
    Layer,
    encode_local,
    fit_labels,
    learn_layer,
    pass_on,
    solve_rows,
    square_distances,
)


def make_classes(n=60, m=20, n_classes=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return normalize(rng.normal(size=(n_classes, m))[y] + noise * rng.normal(size=(n, m))), y


def test_distances_are_those_of_a_loop():
    Y, D = make_classes(8, 5)[0], make_classes(4, 5, seed=1)[0]
    np.testing.assert_allclose(square_distances(Y, D), [[((a - b) ** 2).sum() for b in D] for a in Y], atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_are_solved_one_by_one(n_jobs):
    rng = np.random.default_rng(0)
    D, diagonal, B = rng.normal(size=(30, 12)), rng.uniform(0.01, 2, (9, 30)), rng.normal(size=(9, 30))
    expected = [np.linalg.solve(D @ D.T + np.diag(d), b) for d, b in zip(diagonal, B, strict=True)]
    np.testing.assert_allclose(solve_rows(D @ D.T, diagonal, B, n_jobs), expected, rtol=1e-8)


def test_without_locality_codes_are_least_squares():
    Y, D = make_classes(10, 20)[0], np.random.default_rng(1).normal(size=(6, 20))
    np.testing.assert_allclose(encode_local(Y, D, 0.0), np.linalg.lstsq(D.T, Y.T, rcond=None)[0].T, atol=1e-4)


def test_with_much_locality_near_atoms_are_used_most():
    """At the limit entries are inner product over squared distance."""
    Y, D = make_classes(10, 20)[0], normalize(np.random.default_rng(1).normal(size=(6, 20)))
    expected = Y @ D.T / square_distances(Y, D) / 1e6
    np.testing.assert_allclose(encode_local(Y, D, 1e6), expected, rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize(("beta", "gamma"), [(0.01, 1.0), (0.3, 0.0), (0.1, 10.0)])
def test_the_objective_falls(beta, gamma):
    Y, y = make_classes()
    D, labels = start_dictionary(Y, y, 6, 0)
    layer = Layer(Y, np.eye(3)[y], beta, gamma, 0.1)
    D, objective = learn_layer(layer, D, encode_local(Y, D, beta), labels, 20)
    assert (np.diff(objective) <= 1e-8 * objective[:-1]).all()
    assert objective[-1] < 0.99 * objective[0]
    assert np.linalg.norm(D, axis=1).max() < 1 + 1e-9


def test_codes_with_labels_are_a_minimum():
    Y, y = make_classes(20)
    D, _ = start_dictionary(Y, y, 3, 0)
    layer = Layer(Y, np.eye(3)[y], 0.1, 0.7, 0.1)
    W = fit_labels(encode_local(Y, D, 0.1), layer.H, layer.rho)
    Z = layer.code(D, W)
    rng = np.random.default_rng(0)
    assert all(layer.measure(D, W, Z + 1e-2 * rng.normal(size=Z.shape)) > layer.measure(D, W, Z) for _ in range(20))


def test_atoms_become_a_minimum_in_the_ball():
    Y, y = make_classes()
    D, labels = start_dictionary(Y, y, 2, 0)
    layer, Z = Layer(Y, np.eye(3)[y], 0.5, 0.0, 0.1), encode_local(Y, D, 0.5)
    for _ in range(300):
        D = layer.step(D, Z, labels)
    rng, W = np.random.default_rng(0), np.zeros((3, len(D)))
    least = layer.measure(D, W, Z)
    for _ in range(50):
        other = D + 0.05 * rng.normal(size=D.shape)
        other /= np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1.0)
        assert layer.measure(other, W, Z) > least


def test_one_layer_is_local_codes_and_ridge_regression():
    X, y = make_classes(noise=1.0)
    model = MDDL(1, 5, max_iter=2).fit(X, y)
    (D,), H = model.dictionaries_, np.eye(3)[y]
    Z = np.array([np.linalg.solve(D @ D.T + np.diag(0.01 * ((x - D) ** 2).sum(1) + RIDGE), D @ x) for x in X])
    ridge = (Z**2).sum() / len(Z)
    W = np.linalg.solve(Z.T @ Z + ridge * np.eye(len(D)), Z.T @ H)
    np.testing.assert_allclose(model.decision_function(X), Z @ W, atol=1e-3)


def test_what_is_passed_on_has_unit_norm_and_no_sign():
    passed = pass_on(np.array([[3.0, -1.0, 4.0], [-1.0, -2.0, -3.0]]))
    np.testing.assert_allclose(passed, [[0.6, 0.0, 0.8], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_recognises_easy_classes(n_layers):
    X, y = make_classes(80, 30, 5)
    model = MDDL(n_layers, 4).fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) > 0.95
    assert [D.shape for D in model.dictionaries_] == [(20, 30), (20, 20), (20, 20)][:n_layers]
    assert [len(objective) for objective in model.objective_] == [1] * n_layers


def test_one_image_per_class_and_a_black_one():
    X = np.vstack([np.random.default_rng(0).normal(size=(3, 6)), np.zeros((1, 6))])
    model = MDDL().fit(X, list("abcd"))
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X[:3]) == list("abc")).all()


@pytest.mark.parametrize(
    "wrong", [{"n_layers": 0}, {"atoms_per_class": 0}, {"beta": -1}, {"beta": (1, 2, 3)}, {"gamma": -1}, {"ridge": 0}]
)
def test_says_what_is_wrong(wrong):
    X, y = make_classes()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MDDL(**wrong).fit(X, y)

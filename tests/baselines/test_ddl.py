"""DDL: each layer's problem is solved, and the layers together recognise what is easy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from ddlcn.baselines.ddl import (
    DDL,
    invert_activation,
    learn_dense_layer,
    learn_sparse_layer,
    shrink_codes,
    solve_atoms,
    solve_codes,
)


def make_rows(n=40, m=12, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m))


def test_codes_are_least_squares():
    Y, D = make_rows(), make_rows(5, 12, seed=1)
    np.testing.assert_allclose(solve_codes(Y, D), np.linalg.lstsq(D.T, Y.T, rcond=None)[0].T, atol=1e-10)


def test_atoms_are_least_squares_of_length_one():
    Y, Z = make_rows(), make_rows(40, 5, seed=1)
    Z[:, 3] = 0  # an unused code
    D = solve_atoms(Y, Z)
    best = np.linalg.lstsq(Z, Y, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), [1, 1, 1, 0, 1], atol=1e-12)
    used = [0, 1, 2, 4]
    np.testing.assert_allclose(D[used], best[used] / np.linalg.norm(best[used], axis=1, keepdims=True), atol=1e-10)


def test_sparse_codes_are_the_lassos():
    Y, D = make_rows(6), make_rows(9, 12, seed=1)
    lasso = Lasso(alpha=0.5 / 12, fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = np.stack([lasso.fit(D.T, row).coef_ for row in Y])
    np.testing.assert_allclose(shrink_codes(Y, D, 0.5, 20_000), expected, atol=1e-5)


def test_ista_never_makes_it_worse():
    Y, D = make_rows(6), make_rows(9, 12, seed=1)
    Z, before = np.zeros((6, 9)), np.inf
    for _ in range(30):
        Z = shrink_codes(Y, D, 0.5, 1, Z)
        now = ((Y - Z @ D) ** 2).sum() / 2 + 0.5 * np.abs(Z).sum()
        assert now <= before + 1e-12
        before = now


def test_dense_layer_approaches_principal_components():
    """The best a layer without a penalty can do is the singular value decomposition."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 4)) * [8, 4, 2, 1] @ rng.normal(size=(4, 12)) + 0.01 * rng.normal(size=(60, 12))
    D = learn_dense_layer(Y, 4, 30)
    left = ((Y - solve_codes(Y, D) @ D) ** 2).sum()
    assert left == pytest.approx((np.linalg.svd(Y, compute_uv=False)[4:] ** 2).sum(), rel=1e-3)


def test_sparse_layer_improves_on_its_start():
    Y = make_rows(60, 10)
    few, many = (learn_sparse_layer(Y, 6, 0.1, n) for n in (1, 20))

    def cost(D):
        Z = shrink_codes(Y, D, 0.1, 500)
        return ((Y - Z @ D) ** 2).sum() / 2 + 0.1 * np.abs(Z).sum()

    assert cost(many) < cost(few)


def test_invert_activation_undoes_tanh_and_stays_finite():
    Z = np.linspace(-0.99, 0.99, 50)
    np.testing.assert_allclose(np.tanh(invert_activation(Z)), Z)
    assert np.isfinite(invert_activation(np.array([-5.0, 1.0]))).all()


def test_recognises_easy_classes():
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(5, 30)), np.repeat(np.arange(5), 16)
    X = centres[y] + 0.3 * rng.normal(size=(80, 30))
    model = DDL((20, 15, 10)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95
    assert [D.shape for D in model.dictionaries_] == [(20, 30), (15, 20), (10, 15)]


def test_a_picture_twice_as_bright_is_the_same():
    X, y = make_rows(20, 8), np.arange(20) % 2
    model = DDL((6, 4), n_iter=3).fit(X, y)
    np.testing.assert_allclose(model.decision_function(2 * X), model.decision_function(X))


def test_one_image_per_class_and_a_black_one():
    X = np.vstack([make_rows(3, 6), np.zeros((1, 6))])
    model = DDL().fit(X, list("abcd"))
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X[:3]) == list("abc")).all()


@pytest.mark.parametrize("wrong", [{"n_atoms": 5}, {"n_atoms": ()}, {"n_atoms": (3, 0)}, {"alpha": -1}, {"C": 0}])
def test_says_what_is_wrong(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DDL(**wrong).fit(make_rows(8, 4), np.arange(8) % 2)

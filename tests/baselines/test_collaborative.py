"""SRC and CRC: codes that are optimal, and the class that leaves the least."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from ddlcn.baselines import CRC, SRC
from ddlcn.baselines.collaborative import measure_residuals


@pytest.fixture(scope="module")
def subspaces():
    """Four classes, each a plane in 30 dimensions, and a little noise."""
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(4, 2, 30))
    y = np.repeat(np.arange(4), 12)
    X = np.einsum("nk,nkm->nm", rng.normal(size=(48, 2)), planes[y]) + 0.02 * rng.normal(size=(48, 30))
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize("method", [SRC, CRC])
def test_recognises_subspaces(method, subspaces):
    X, y, X_new, y_new = subspaces
    assert method().fit(X, y).score(X_new, y_new) == 1.0
    assert np.array_equal(method().fit(X, y).predict(-3.0 * X_new), method().fit(X, y).predict(X_new))


def test_src_is_what_a_lasso_and_a_loop_say(subspaces):
    X, y, X_new, _ = subspaces
    model = SRC(0.01, tol=1e-9).fit(X, y)
    A = X / np.linalg.norm(X, axis=1, keepdims=True)
    for x, scores in zip(X_new[:5], model.decision_function(X_new[:5]), strict=True):
        x = x / np.linalg.norm(x)
        lasso = Lasso(0.01 / len(x), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A.T, x)
        by_hand = [-np.linalg.norm(x - lasso.coef_[y == c] @ A[y == c]) for c in range(4)]
        np.testing.assert_allclose(scores, by_hand, atol=1e-4)


def test_src_by_pursuit(subspaces):
    X, y, X_new, y_new = subspaces
    model = SRC(coding="omp", n_nonzero=2).fit(X, y)
    assert model.score(X_new, y_new) == 1.0
    from sklearn.linear_model import orthogonal_mp

    x = X_new[0] / np.linalg.norm(X_new[0])
    z = orthogonal_mp(model.dictionary_.T, x, n_nonzero_coefs=2)
    by_hand = -measure_residuals(x[None], z[None], model.dictionary_, y, 4)
    np.testing.assert_allclose(model.decision_function(X_new[:1]), by_hand, atol=1e-10)
    with pytest.raises(ValueError, match="coding must be one of"):
        SRC(coding="fista").fit(X, y)


def test_crc_is_ridge_regression(subspaces):
    X, y, X_new, _ = subspaces
    A = X / np.linalg.norm(X, axis=1, keepdims=True)
    x = X_new[:1] / np.linalg.norm(X_new[:1])
    z = np.linalg.solve(A @ A.T + 0.1 * len(X) / 700 * np.eye(len(X)), A @ x[0])
    by_hand = -measure_residuals(x, z[None], A, y, 4, relative=True)
    np.testing.assert_allclose(CRC(0.1).fit(X, y).decision_function(X_new[:1]), by_hand, atol=1e-10)


def test_fewer_atoms_per_class(subspaces):
    X, y, _, _ = subspaces
    model = SRC(atoms_per_class=2, random_state=0).fit(X, y)
    assert np.bincount(model.atom_labels_).tolist() == [2, 2, 2, 2]
    assert SRC(atoms_per_class=50).fit(X, y).dictionary_.shape == X.shape
    with pytest.raises(ValueError, match="alpha must be a number above 0"):
        SRC(0.0).fit(X, y)

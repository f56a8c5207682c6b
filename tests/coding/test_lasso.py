"""Lasso codes are optimal, and the duality gap certifies it."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, lasso_path
from sklearn.preprocessing import normalize

from ddlcn.coding.lasso import LassoCoder, encode_lasso


def objective(X, D, Z, alpha):
    return 0.5 * ((X - Z @ D) ** 2).sum(axis=1) + alpha * np.abs(Z).sum(axis=1)


def draw(seed, n=30, n_atoms=60, m=20, alike=0.0):
    """Descriptors and atoms; the more `alike`, the more all of them have in common."""
    rng = np.random.default_rng(seed)
    common = alike * rng.normal(size=m)
    return normalize(rng.normal(size=(n, m)) + common), rng.normal(size=(n_atoms, m)) * 0.3 + common


@pytest.mark.parametrize("alpha", [0.3, 0.03, 0.001])
@pytest.mark.parametrize("alike", [0.0, 3.0])
def test_optimality_conditions(alpha, alike):
    X, D = draw(1, alike=alike)
    result = encode_lasso(X, D, alpha, tol=1e-10)
    assert result.converged
    Z = result.codes.toarray()
    c = (X - Z @ D) @ D.T
    assert np.abs(c).max() <= alpha * (1 + 1e-4)
    np.testing.assert_allclose(c[Z != 0], alpha * np.sign(Z[Z != 0]), rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 0.05])
def test_same_codes_as_scikit_learn(alpha):
    X, D = draw(2)
    Z = encode_lasso(X, D, alpha, tol=1e-10).codes.toarray()
    m = X.shape[1]  # scikit-learn divides the squares by the number of samples, which are our dimensions
    model = Lasso(alpha=alpha / m, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(D.T, X.T)
    np.testing.assert_allclose(Z, model.coef_, atol=1e-6)


def test_same_path_as_scikit_learn():
    X, D = draw(3, n=1)
    alphas = [0.3, 0.1, 0.03]
    _, path, _ = lasso_path(D.T, X[0], alphas=np.array(alphas) / X.shape[1], tol=1e-12, max_iter=100_000)
    ours = [encode_lasso(X, D, alpha, tol=1e-10).codes.toarray()[0] for alpha in alphas]
    np.testing.assert_allclose(np.array(ours), path.T, atol=1e-6)


def test_gap_bounds_what_is_missing():
    X, D = draw(4, alike=2.0)
    alpha = 0.01
    best = objective(X, D, encode_lasso(X, D, alpha, tol=1e-10).codes.toarray(), alpha)
    for tol in (0.3, 1e-2, 1e-4):
        rough = encode_lasso(X, D, alpha, tol=tol)
        excess = objective(X, D, rough.codes.toarray(), alpha) - best
        start = 0.5 * (X**2).sum(axis=1)
        assert (excess <= rough.gap * start + 1e-9).all()
        assert (rough.gap <= tol).all()


def test_above_the_largest_product_everything_is_zero():
    X, D = draw(5)
    largest = np.abs(X @ D.T).max()
    assert encode_lasso(X, D, largest * 1.001).codes.nnz == 0
    assert encode_lasso(X, D, largest * 0.99).codes.nnz > 0


def test_degenerate_problems_have_an_answer():
    rng = np.random.default_rng(6)
    D = normalize(rng.normal(size=(8, 5)))
    D = np.vstack([D, D, -D, np.zeros((1, 5)), D[:1] + D[1:2]])  # twins, opposites, a zero, a sum of two
    X = np.vstack([D, rng.normal(size=(20, 5))])
    for alpha in (0.1, 1e-3):
        result = encode_lasso(X, D, alpha)
        assert np.isfinite(result.codes.data).all()
        assert result.converged


def test_block_holds_the_same_codes():
    X, D = draw(7)
    X[3] = 0.0
    coder = LassoCoder(D, 0.1)
    block, codes = coder.encode_block(X), encode_lasso(X, D, 0.1).codes.toarray()
    for i, count in enumerate(block.counts):
        atoms = block.indices[i, :count]
        assert (np.diff(atoms) > 0).all()
        np.testing.assert_array_equal(block.values[i, :count], codes[i, atoms])
        assert count == (codes[i] != 0).sum()


def test_threads_change_nothing():
    X, D = draw(8, n=700)
    one, two = (encode_lasso(X, D, 0.05, n_jobs=n_jobs).codes for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.toarray(), two.toarray())


def test_alpha_must_be_positive():
    with pytest.raises(ValueError, match="alpha"):
        encode_lasso(np.eye(2), np.eye(2), 0.0)


def test_long_codes_are_those_of_one_atom_at_a_time(monkeypatch):
    """Many nonzeros: begun by exchanges of many atoms, ended by the same certificate."""
    from ddlcn.coding import lasso

    rng = np.random.default_rng(0)
    D = rng.normal(size=(300, 280)) * np.linspace(1, 0.05, 280)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.normal(size=(5, 280)) * np.linspace(1, 0.05, 280)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    quick = encode_lasso(X, D, 0.002, n_jobs=1)
    monkeypatch.setattr(lasso, "LONG", 10**6)
    slow = encode_lasso(X, D, 0.002, n_jobs=1)
    assert np.diff(quick.codes.indptr).min() > 128
    assert quick.converged
    np.testing.assert_allclose(quick.codes.toarray(), slow.codes.toarray(), atol=1e-7)


def test_a_bad_beginning_is_mended():
    from ddlcn.engines.cpu.lasso import solve_lasso

    rng = np.random.default_rng(1)
    D = rng.normal(size=(60, 20))
    X = rng.normal(size=(4, 20))
    coder = LassoCoder(D, 0.5)
    right, _ = coder.encode_dense(X)
    Z, gap = np.zeros_like(right), np.empty(4)
    Z[:, :10] = rng.normal(size=(4, 10))
    solve_lasso(coder.gram, X @ D.T, np.square(X).sum(axis=1), coder.width, 0.5, 1e-9, 60, Z, gap)
    assert gap.max() <= 1e-9
    np.testing.assert_allclose(Z, right, atol=1e-4)


def test_dependent_atoms_still_end_with_a_certificate():
    rng = np.random.default_rng(2)
    D = rng.normal(size=(400, 180))
    D = np.concatenate([D, D[:50]])  # twins
    X = rng.normal(size=(3, 180))
    assert encode_lasso(X, D, 0.01, n_jobs=1).gap.max() < 1e-6

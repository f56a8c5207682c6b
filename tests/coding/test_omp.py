"""Orthogonal matching pursuit does what its slow, obvious version does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import orthogonal_mp

from ddlcn.coding.omp import BLOCK, encode_omp


def unit(rng, *shape):
    A = rng.normal(size=shape)
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def pursue_slowly(x, D, n_nonzero):
    """Least squares from scratch at every step."""
    chosen, z, left = [], np.zeros(len(D)), x
    for _ in range(n_nonzero):
        chosen.append(int(np.argmax(np.abs(D @ left))))
        z[:] = 0
        z[chosen] = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
        left = x - z @ D
    return z


@pytest.mark.parametrize(("n_atoms", "m", "n_nonzero"), [(40, 12, 1), (40, 12, 7), (9, 30, 9), (70, 20, 13)])
def test_equals_least_squares_at_every_step(n_atoms, m, n_nonzero):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(25, m)), unit(rng, n_atoms, m)
    codes = encode_omp(X, D, n_nonzero)
    assert codes.shape == (25, n_atoms)
    assert codes.has_sorted_indices
    assert_allclose(codes.toarray(), [pursue_slowly(x, D, n_nonzero) for x in X], atol=1e-10)


def test_equals_scikit_learn():
    rng = np.random.default_rng(1)
    X, D = rng.normal(size=(30, 25)), unit(rng, 60, 25)
    assert_allclose(encode_omp(X, D, 10).toarray(), orthogonal_mp(D.T, X.T, n_nonzero_coefs=10).T, atol=1e-10)


def test_rest_is_orthogonal_to_the_chosen():
    rng = np.random.default_rng(2)
    X, D = rng.normal(size=(20, 30)), unit(rng, 50, 30)
    codes = encode_omp(X, D, 8).toarray()
    products = (X - codes @ D) @ D.T
    assert np.abs(products[codes != 0]).max() < 1e-12


def test_recovers_sparse_codes_and_stops():
    rng = np.random.default_rng(3)
    D = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    true = np.zeros((15, 30))
    for row in true:
        row[rng.choice(30, 3, replace=False)] = rng.normal(size=3) + 3
    codes = encode_omp(true @ D, D, 20)
    assert_array_equal(np.diff(codes.indptr), 3)  # no more than there is to explain
    assert_allclose(codes.toarray(), true, atol=1e-12)


def test_tolerance_stops_as_soon_as_it_is_met():
    rng = np.random.default_rng(4)
    X, D = unit(rng, 40, 16), unit(rng, 64, 16)
    codes = encode_omp(X, D, 16, tol=0.1)
    left = ((X - codes @ D) ** 2).sum(axis=1)
    assert (left <= 0.1 + 1e-12).all()
    for i, count in enumerate(np.diff(codes.indptr)):
        fewer = encode_omp(X[i : i + 1], D, max(count - 1, 1))
        assert count == 1 or ((X[i] - fewer @ D) ** 2).sum() > 0.1


def test_first_of_equal_atoms_wins():
    rng = np.random.default_rng(5)
    D = unit(rng, 37, 10)
    twice = np.concatenate([D, D, D])
    assert encode_omp(rng.normal(size=(300, 10)), twice, 6).indices.max() < 37


def test_dependent_atoms_and_zero_items():
    rng = np.random.default_rng(6)
    D = unit(rng, 2, 8)
    D = np.concatenate([D, [(D[0] + D[1]) / np.linalg.norm(D[0] + D[1])], np.zeros((1, 8))])  # a plane, and nothing
    X = np.concatenate([rng.normal(size=(10, 8)), np.zeros((2, 8))])
    codes = encode_omp(X, D, 4).toarray()
    assert np.isfinite(codes).all()
    assert ((codes != 0).sum(axis=1)[:10] == 2).all()
    assert_array_equal(codes[10:], 0)


def test_blocks_threads_and_scale_change_nothing():
    rng = np.random.default_rng(7)
    X, D = rng.normal(size=(2 * BLOCK + 3, 12)), unit(rng, 30, 12)
    once = encode_omp(X, D, 5, n_jobs=1)
    assert_array_equal(once.toarray(), encode_omp(X, D, 5, n_jobs=2, gram=D @ D.T).toarray())
    assert_allclose(once.toarray() * 1e6, encode_omp(X * 1e6, D, 5).toarray(), rtol=1e-9)
    assert_allclose(once[[3]].toarray(), encode_omp(X[3:4], D, 5).toarray(), atol=1e-12)


def test_more_entries_than_atoms_are_clipped():
    rng = np.random.default_rng(8)
    assert encode_omp(rng.normal(size=(4, 9)), unit(rng, 3, 9), 30).nnz == 12


@pytest.mark.parametrize(
    "change",
    [{"n_nonzero": 0}, {"tol": -1.0}, {"X": np.ones((2, 3))}, {"D": np.ones(4)}, {"X": np.full((2, 4), np.nan)}],
)
def test_bad_arguments_are_named(change):
    arguments = {"X": np.ones((2, 4)), "D": np.eye(4), "n_nonzero": 2} | change
    with pytest.raises(ValueError, match=next(iter(change))):
        encode_omp(**arguments)

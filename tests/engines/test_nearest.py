"""The nearest atoms, found in float32, against distances in float64."""

import numpy as np
import pytest

from ddlcn.coding import encode
from ddlcn.coding.locality import LocalityCoder


def supports(X, D, k):
    """Where codes may be: with beta = 0 and generic data every one of the k nearest gets a code."""
    codes = encode(X, D, beta=0.0, n_neighbors=k).codes
    return [set(codes.indices[codes.indptr[i] : codes.indptr[i + 1]].tolist()) for i in range(len(X))]


def expected(X, D, k):
    distances = ((X[:, None].astype(np.float64) - D[None].astype(np.float64)) ** 2).sum(axis=2)
    return [set(row.tolist()) for row in np.argsort(distances, axis=1, kind="stable")[:, :k]]


@pytest.mark.parametrize("n_atoms", [2, 15, 16, 17, 31, 32, 33, 64, 65, 200, 577])
@pytest.mark.parametrize("k", [1, 2, 5, 7, 8, 15])
def test_every_size(n_atoms, k):
    rng = np.random.default_rng(n_atoms * 100 + k)
    X, D = rng.normal(size=(20, 40)), rng.normal(size=(n_atoms, 40))
    assert supports(X, D, k) == expected(X, D, min(k, n_atoms))


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e6])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_what_float32_cannot_tell_apart(offset, spread):
    """Distances that differ in the ninth digit only, and atoms far from the origin."""
    rng = np.random.default_rng(0)
    X, D = offset + spread * rng.normal(size=(10, 30)), offset + spread * rng.normal(size=(60, 30))
    D[1::2] = D[::2] + 1e-8 * spread * rng.normal(size=(30, 30))
    indices = LocalityCoder(D, 1e-3, 7, 1e-6).encode_block(X)
    for i, nearest in enumerate(expected(X, D, 7)):
        assert set(indices.indices[i, : indices.counts[i]].tolist()) <= nearest


def test_ties_go_to_the_lower_index():
    D = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [5.0, 5.0]])
    X = np.zeros((1, 2))
    for k in (1, 2, 3):
        assert encode(X, D, n_neighbors=k).codes.indices.max() < k
    everywhere = np.tile(D, (40, 1))  # 240 atoms, each 40 times
    assert encode(X, everywhere, n_neighbors=4).codes.indices.max() < 4


def test_equal_atoms():
    """All distances equal: nothing to choose from."""
    result = encode(np.ones((3, 4)), np.zeros((50, 4)), n_neighbors=5)
    np.testing.assert_allclose(result.codes.sum(axis=1), 1.0)
    assert result.codes.indices.max() < 5
    assert result.converged

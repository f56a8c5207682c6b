"""Depth: collapsed and explicit networks are the same network."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from ddlcn.coding import augment, encode, encode_layers, path_coefficients, path_weights, reconstruct
from ddlcn.pooling import assign_cells, pool
from tests.test_pooling import make_block, pool_slowly

PYRAMID = (1, 2, 4)


def random_network(n_layers: int, seed: int = 0):
    """Codes of a few images' descriptors, signs mixed, and deep codes with both signs."""
    rng = np.random.default_rng(seed)
    sizes = (6, 5, 4, 3)[:n_layers]
    deep = []
    for above, below in pairwise(sizes):
        gamma = rng.normal(size=(above, below)) * (rng.random((above, below)) < 0.7)
        deep.append(sparse.csr_array(gamma))
    counts = (12, 1, 5)  # 16 cells at the finest level: many hold one descriptor, many none
    codes = [rng.normal(size=(n, sizes[0])) * (rng.random((n, sizes[0])) < 0.6) for n in counts]
    xy = [rng.integers(0, 30, (n, 2)).astype(float) for n in counts]
    return codes, xy, deep


def collapsed_gram(codes, xy, deep, power=1.0, without_n=False):
    P, N = path_weights(deep, codes[0].shape[1], power)
    cells = np.concatenate([assign_cells(p, (30, 30), PYRAMID) for p in xy])
    starts = np.cumsum([0] + [len(c) for c in codes])
    minus = np.zeros_like(N) if without_n else np.sqrt(N)
    features = pool(
        make_block(np.concatenate(codes)), cells, starts, PYRAMID, np.sqrt(P), minus, power
    ).features.toarray()
    return features.astype(np.float64) @ features.T


def explicit_gram(codes, xy, deep, power=1.0):
    """The paper's own way: augment every descriptor's code, then pool the long codes by plain max."""
    features = []
    for z, p in zip(codes, xy, strict=True):
        long_codes = augment(z, deep).toarray()
        width = long_codes.shape[1]
        feature = pool_slowly(long_codes, p, (30, 30), PYRAMID, np.ones(width), np.zeros(width), power)
        features.append(feature)
    return np.array(features) @ np.array(features).T


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
def test_collapsed_and_explicit_features_have_the_same_gram_matrix(n_layers, power):
    for seed in range(5):
        network = random_network(n_layers, seed)
        np.testing.assert_allclose(collapsed_gram(*network, power), explicit_gram(*network, power), atol=1e-5)


@pytest.mark.parametrize("n_layers", [2, 3, 4])
def test_the_gram_matrix_is_wrong_without_n(n_layers):
    network = random_network(n_layers)
    assert np.abs(collapsed_gram(*network, without_n=True) - explicit_gram(*network)).max() > 1e-2


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
def test_path_weights_are_the_sums_of_squared_path_coefficients(n_layers):
    codes, _, deep = random_network(n_layers)
    P, N = path_weights(deep, codes[0].shape[1])
    rows = path_coefficients(deep, codes[0].shape[1])
    np.testing.assert_allclose(P, (np.maximum(rows, 0) ** 2).sum(axis=1))
    np.testing.assert_allclose(N, (np.minimum(rows, 0) ** 2).sum(axis=1))


def test_the_explicit_layout_of_two_layers():
    z, gamma = np.array([[2.0, -3.0]]), np.array([[0.5, -1.0, 0.0], [1.0, 4.0, 2.0]])
    expected = [2, 1, -2, 0, -3, -3, -12, -6]  # [z_1, z_1 gamma_1, z_2, z_2 gamma_2]
    assert augment(z, [gamma]).toarray()[0].tolist() == expected


@pytest.mark.parametrize(("sizes", "length"), [((6,), 6), ((6, 5), 36), ((6, 5, 4), 156), ((6, 5, 4, 3), 516)])
def test_the_explicit_length(sizes, length):
    codes, _, deep = random_network(len(sizes))
    assert augment(codes[0], deep).shape[1] == length


def test_reconstruct_replaces_atoms_by_their_approximations():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 8))
    dictionaries = [rng.normal(size=(12, 8)), rng.normal(size=(6, 8)), rng.normal(size=(4, 8))]
    codes = encode(X, dictionaries[0], beta=0.1).codes
    deep = encode_layers(dictionaries, (0.1, 0.2, 0.3), (None, 4, None), tol=1e-6, n_jobs=1)
    layers = reconstruct(codes, dictionaries, deep)
    Z, G2, G3 = codes.toarray(), deep[0].toarray(), deep[1].toarray()
    np.testing.assert_allclose(layers[0], Z @ dictionaries[0])
    np.testing.assert_allclose(layers[1], Z @ (G2 @ dictionaries[1]))
    np.testing.assert_allclose(layers[2], Z @ (G2 @ (G3 @ dictionaries[2])))
    assert [G2.shape, G3.shape] == [(12, 6), (6, 4)]
    np.testing.assert_allclose(G2, encode(dictionaries[0], dictionaries[1], beta=0.2, n_neighbors=4).codes.toarray())


def test_reconstruct_needs_one_code_per_deeper_layer():
    with pytest.raises(ValueError, match="deep_codes"):
        reconstruct(np.ones((1, 2)), [np.ones((2, 3)), np.ones((1, 3))])

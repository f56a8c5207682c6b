"""Residual depth: equal to a direct, slow construction; certified like layer 1; what is left over falls."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNEncoder, Descriptors
from ddlcn.blocks import Branch, Encoding
from ddlcn.coding import encode
from ddlcn.coding.residual import ResidualCoder
from ddlcn.images import NamedImage
from tests.test_pooling import pool_slowly

BETAS, NEIGHBORS = (0.05, 0.1, 0.2, 0.1), (4, 3, None, 2)


def small_network(n_layers: int, dtype=np.float64, seed: int = 0):
    """Descriptors (40, 10) and dictionaries of 7, 5, 4, 6 atoms; the first descriptor is an atom of layer 1."""
    rng = np.random.default_rng(seed)
    dictionaries = [rng.normal(size=(size, 10)).astype(dtype) for size in (7, 5, 4, 6)[:n_layers]]
    X = rng.normal(size=(40, 10)).astype(dtype)
    X[0] = dictionaries[0][3]
    return X, dictionaries


def code_slowly(X, dictionaries):
    """The definition, descriptor by descriptor and atom by atom: dense (n, D_1 (1 + D_2 + ...))."""
    layer1 = dictionaries[0]
    Z = encode(X, layer1, BETAS[0], NEIGHBORS[0]).codes.toarray()
    layers = [Z] + [np.zeros((len(X), len(layer1), len(U))) for U in dictionaries[1:]]
    for i, x in enumerate(X):
        for j in np.flatnonzero(Z[i]):
            r = x - layer1[j]
            for l, U in enumerate(dictionaries[1:], 1):
                length = np.linalg.norm(r)
                if length == 0.0:
                    break
                gamma = encode(r[None] / length, U, BETAS[l], NEIGHBORS[l]).codes.toarray()[0]
                coded = gamma @ U
                scale = max(r @ coded / (coded @ coded), 0.0)  # leaves the shortest residual
                layers[l][i, j] = Z[i, j] * scale * gamma
                r = r - scale * coded
    return np.hstack([layer.reshape(len(X), -1) for layer in layers])


def to_dense(block, n_columns):
    dense = np.zeros((len(block.counts), n_columns))
    for row, indices, values, count in zip(dense, block.indices, block.values, block.counts, strict=True):
        assert (np.diff(indices[:count]) > 0).all()
        row[indices[:count]] = values[:count]
    return dense


def make_coder(dictionaries):
    n = len(dictionaries)
    return ResidualCoder(dictionaries, BETAS[:n], NEIGHBORS[:n], tol=1e-6)


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
def test_codes_equal_the_slow_construction(n_layers):
    X, dictionaries = small_network(n_layers)
    coder = make_coder(dictionaries)
    expected = code_slowly(X, dictionaries)
    assert coder.n_atoms == expected.shape[1]
    np.testing.assert_allclose(to_dense(coder.encode_block(X), coder.n_atoms), expected, atol=1e-9)


def test_single_precision_gives_the_same_codes():
    X, dictionaries = small_network(3, np.float32)
    expected = code_slowly(X.astype(np.float64), [d.astype(np.float64) for d in dictionaries])
    coder = make_coder(dictionaries)
    np.testing.assert_allclose(to_dense(coder.encode_block(X), coder.n_atoms), expected, atol=1e-5)


@pytest.mark.parametrize("weights", [None, (0.0, 1.0, 0.5)])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_features_of_an_image_equal_the_slow_construction(power, weights):
    X, dictionaries = small_network(3)
    rng = np.random.default_rng(5)
    xy = rng.integers(0, 30, (len(X), 2)).astype(float)

    class Given:
        """Gives the descriptors above for any image."""

        def transform(self, images):
            return [Descriptors(X, xy, (30, 30)) for _ in images]

    model = DDLCNEncoder(
        Given(), n_layers=3, depth="residual", layer_weights=weights, pool_power=power,
        beta=BETAS[:3], n_neighbors=NEIGHBORS[:3],
    )  # fmt: skip
    branch = Branch(model.configure().branches[0], Given(), dictionaries, None, np.zeros(7), 0.0)
    feature = Encoding([branch], (1.0,)).transform([NamedImage("image", None)], n_jobs=1).toarray()[0]
    n_columns = 7 * (1 + 5 + 4)
    plus = np.repeat(weights or (1.0, 1.0, 1.0), (7, 7 * 5, 7 * 4))
    slow = pool_slowly(code_slowly(X, dictionaries), xy, (30, 30), (1, 2, 4), plus, np.zeros(n_columns), power)
    np.testing.assert_allclose(feature, slow[: 21 * n_columns], atol=1e-6)


def test_every_layer_is_certified():
    X, dictionaries = small_network(4)
    assert make_coder(dictionaries).encode_block(X).kkt.max() <= 1e-6


def test_the_certificate_is_the_worst_of_all_layers():
    """A layer that may not move (one atom, far tolerance) cannot hide behind layer 1: it is the maximum."""
    X, dictionaries = small_network(2)
    layer1 = encode(X, dictionaries[0], BETAS[0], NEIGHBORS[0])
    block = make_coder(dictionaries).encode_block(X)
    assert (block.kkt >= layer1.kkt).all()
    assert (block.kkt > layer1.kkt).any()


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
def test_reconstruct_is_what_the_coefficients_say(n_layers):
    X, dictionaries = small_network(n_layers)
    coder = make_coder(dictionaries)
    codes = code_slowly(X, dictionaries)
    approximation = np.zeros_like(X)
    for layer, (atoms, columns) in enumerate(zip(dictionaries, coder.layer_columns, strict=True)):
        part = codes[:, columns]
        if layer > 0:
            part = part.reshape(len(X), len(dictionaries[0]), len(atoms)).sum(axis=1)
        approximation = approximation + part @ atoms
        np.testing.assert_allclose(coder.reconstruct(X)[layer], approximation, atol=1e-9)


def test_a_descriptor_that_is_an_atom_leaves_nothing():
    X, dictionaries = small_network(3)
    coder = make_coder(dictionaries)
    codes = to_dense(coder.encode_block(X[:1]), coder.n_atoms)[0]
    assert codes.tolist() == [float(j == 3) for j in range(coder.n_atoms)]
    assert len(coder.compute_directions(X[:1])) == 0


def test_directions_have_length_one():
    X, dictionaries = small_network(2)
    directions = make_coder(dictionaries).compute_directions(X)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)

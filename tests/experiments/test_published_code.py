"""The published code's codes: equal to scikit-learn's path, laid out by rank, and no fixed weight of layer 1."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import lars_path

from ddlcn.experiments.published_code import (
    FAR,
    LAMBDA,
    N_LAYER1,
    N_LAYER2,
    NEAR,
    RankedCoder,
    encode_weighted,
    follow_path,
    measure_distances,
)


def draw(n, m, seed):
    rows = np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


X, D, U = draw(7, 32, 0), draw(60, 32, 1), draw(24, 32, 2)


def code_slowly(x, D, n_nonzero):
    """The same by scikit-learn: a dictionary whose atoms are divided by their weights."""
    distances = np.linalg.norm((x - D) ** 2, axis=1)
    weights = np.full(len(D), FAR)
    nearest = np.argsort(distances)[:n_nonzero]
    weights[nearest] = NEAR / distances[nearest]
    scaled = (D / weights[:, None]).T
    _, _, path = lars_path(scaled, x, method="lasso", alpha_min=LAMBDA / len(x))
    on = path != 0.0
    too_many = np.flatnonzero((on[:, :-1] | on[:, 1:]).sum(axis=0) > n_nonzero)  # on the way from one to the next
    last = too_many[0] if len(too_many) else -1
    return path[:, last] / weights


def test_distances_are_norms_of_squared_differences():
    slow = np.linalg.norm((X[:, None] - D[None]) ** 2, axis=2)
    np.testing.assert_allclose(measure_distances(X, D), slow, atol=1e-9)


@pytest.mark.parametrize(("atoms", "n_nonzero"), [(D, N_LAYER1), (U, N_LAYER2)])
def test_codes_are_the_path_of_scikit_learn(atoms, n_nonzero):
    columns, values, counts = encode_weighted(X, atoms, atoms @ atoms.T, n_nonzero)
    for x, own_columns, own_values, count in zip(X, columns, values, counts, strict=True):
        code = np.zeros(len(atoms))
        code[own_columns[:count]] = own_values[:count]
        np.testing.assert_allclose(code, code_slowly(x, atoms, n_nonzero), atol=1e-8)


def test_a_path_that_ends_at_lambda_is_optimal():
    weights = np.ones((len(X), len(D)))
    columns, values, counts = np.zeros((len(X), 40), np.int64), np.zeros((len(X), 40)), np.zeros(len(X), np.int64)
    follow_path(D @ D.T, X @ D.T, weights, LAMBDA, columns, values, counts)
    for x, own_columns, own_values, count in zip(X, columns, values, counts, strict=True):
        code = np.zeros(len(D))
        code[own_columns[:count]] = own_values[:count]
        slopes = D @ (x - code @ D)
        assert np.abs(slopes).max() <= LAMBDA + 1e-9
        np.testing.assert_allclose(slopes[code != 0.0], LAMBDA * np.sign(code[code != 0.0]), atol=1e-9)


def lay_out(coder, X):
    block = coder.encode_block(X)
    Z = np.zeros((len(X), coder.n_atoms))
    for z, columns, values, count in zip(Z, block.indices, block.values, block.counts, strict=True):
        np.add.at(z, columns[:count], values[:count])
    return Z


def test_layer_2_stands_by_the_rank_of_the_active_atom():
    Z = lay_out(RankedCoder([D, U]), X)
    gamma = np.array([code_slowly(v, U, N_LAYER2) for v in D])
    assert Z.shape == (len(X), len(D) + N_LAYER1 * len(U))
    for z in Z:
        active = np.flatnonzero(z[: len(D)])
        assert len(active) == N_LAYER1
        second = z[len(D) :].reshape(N_LAYER1, len(U))
        np.testing.assert_allclose(second, z[active, None] * gamma[active], atol=1e-8)


def test_a_short_code_shows_the_first_atoms():
    # Atoms that nothing correlates with: the code is empty, and the published code takes ones.
    flat = np.hstack([D, np.zeros((len(D), 1))])
    x = np.zeros((1, 33))
    x[0, -1] = 1.0
    z = lay_out(RankedCoder([flat, np.hstack([U, np.zeros((len(U), 1))])]), x)[0]
    gamma = np.array([code_slowly(v, U, N_LAYER2) for v in D[:N_LAYER1]])
    np.testing.assert_allclose(z[len(D) :].reshape(N_LAYER1, -1), gamma, atol=1e-8)


def test_of_few_atoms_all_but_one_are_used():
    coder = RankedCoder([D[:12], U[:6]])
    assert coder.n_atoms == 12 + 11 * 6
    assert (np.count_nonzero(lay_out(coder, X)[:, :12], axis=1) <= 11).all()


def test_more_layers_are_refused():
    with pytest.raises(ValueError, match="one or two layers"):
        RankedCoder([D, U, U])

"""First-order parameters: directions of unit variance, and statistics that match the codes."""

import numpy as np
import pytest

from ddlcn.coding import encode
from ddlcn.dictionaries import learn_first_order
from ddlcn.dictionaries.first_order import N_DIRECTIONS


def some_descriptors(n=500, m=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, m)) * np.linspace(2.0, 0.1, m))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_directions_are_uncorrelated_of_variance_one():
    X = some_descriptors()
    model = learn_first_order(X, 8, 0.1, 4, 1e-6, random_state=0)
    Y = (X - model.centre) @ model.basis
    assert Y.shape[1] == N_DIRECTIONS
    np.testing.assert_allclose(np.cov(Y.T), np.eye(N_DIRECTIONS), atol=1e-8)


def test_statistics_are_those_of_the_codes():
    X = some_descriptors()
    model = learn_first_order(X, 8, 0.1, 4, 1e-6, random_state=0)
    Z = np.maximum(encode(X, model.atoms, 0.1, 4).codes.toarray(), 0.0)
    Y = (X - model.centre) @ model.basis
    for j in range(8):
        np.testing.assert_allclose(model.means[j], np.average(Y, axis=0, weights=Z[:, j]), atol=1e-9)
    np.testing.assert_allclose(model.shares, Z.sum(axis=0) / Z.sum(), atol=1e-12)
    assert model.shares.sum() == pytest.approx(1.0)
    assert (model.scales > 0.0).all()


def test_same_seed_same_model_whatever_the_threads():
    X = some_descriptors()
    one, two = (learn_first_order(X, 8, 0.1, 4, 1e-6, random_state=3, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.atoms, two.atoms)
    np.testing.assert_array_equal(one.means, two.means)


def test_descriptors_of_few_directions():
    """Where descriptors, scaled to unit norm, vary in three directions only, three are kept."""
    rng = np.random.default_rng(0)
    X = np.hstack([np.abs(rng.normal(size=(200, 2))), np.zeros((200, 6))]) + 1.0
    model = learn_first_order(X, 3, 0.1, 2, 1e-6, random_state=0)
    assert model.basis.shape == (8, 3)
    assert np.isfinite(model.basis).all()

"""Residual layers are learned on what the layers above leave over."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.coding.residual import ResidualCoder
from ddlcn.dictionaries import learn_residual_layers

BETAS, NEIGHBORS = (0.05, 0.05, 0.05), (3, 3, 3)


@pytest.fixture(scope="module")
def scattered():
    """Descriptors around three atoms, each off by one of four hidden directions (the same for all atoms)."""
    rng = np.random.default_rng(0)
    layer1 = 10 * np.linalg.qr(rng.normal(size=(16, 3)))[0].T  # far apart, so that each descriptor uses one
    hidden = np.linalg.qr(rng.normal(size=(16, 4)))[0].T
    X = layer1[rng.integers(3, size=600)] + 0.5 * hidden[rng.integers(4, size=600)]
    return layer1, hidden, X


def test_layer_2_finds_the_directions_of_the_residuals(scattered):
    layer1, hidden, X = scattered
    (layer2,) = learn_residual_layers(layer1, X, (4,), BETAS[:2], (1, 3), 1e-6, l1_radius=1.0, random_state=0)
    likeness = np.abs(layer2 @ hidden.T) / np.linalg.norm(layer2, axis=1, keepdims=True)  # (4, 4)
    assert sorted(likeness.argmax(axis=1)) == [0, 1, 2, 3]
    assert likeness.max(axis=1).min() > 0.95


def test_the_error_falls_with_every_layer():
    rng = np.random.default_rng(1)
    X = np.maximum(rng.normal(size=(2000, 12)), 0)
    layer1 = X[:6]
    layers = learn_residual_layers(layer1, X, (16, 16), BETAS, NEIGHBORS, 1e-6, random_state=0)
    held_out = np.maximum(rng.normal(size=(500, 12)), 0)
    approximations = ResidualCoder([layer1, *layers], BETAS, NEIGHBORS, 1e-6).reconstruct(held_out)
    errors = [float(((held_out - a) ** 2).mean()) for a in approximations]
    assert errors[0] > errors[1] > errors[2]


def test_threads_do_not_matter_and_the_seed_does(scattered):
    layer1, _, X = scattered
    one, two, other = (
        learn_residual_layers(layer1, X, (4, 2), BETAS, NEIGHBORS, 1e-6, random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((0, 1), (0, 2), (1, 1))
    )
    assert [len(layer) for layer in one] == [4, 2]
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])


def test_descriptors_that_are_atoms_leave_nothing_and_that_is_fine():
    layer1 = np.eye(4)
    (layer2,) = learn_residual_layers(layer1, layer1, (2,), BETAS[:2], NEIGHBORS[:2], 1e-6, random_state=0)
    assert layer2.shape == (2, 4)
    assert np.isfinite(layer2).all()


def test_descriptors_of_another_width_are_refused():
    with pytest.raises(ValueError, match="X has rows of width 3 where 4 is needed"):
        learn_residual_layers(np.eye(4), np.ones((5, 3)), (2,), BETAS[:2], NEIGHBORS[:2], 1e-6)

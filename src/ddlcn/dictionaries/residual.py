"""The dictionaries of residual layers, learned on the directions of residuals (docs/method.md 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding.residual import ResidualCoder
from ddlcn.dictionaries.learn import learn_dictionary
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_matrix, check_number, seed_sequence

Array = NDArray[Any]

# Directions that a layer learns from, at most: half of what 500 batches of 512 contain.
MAX_DIRECTIONS = 100_000
# Descriptors whose residuals are computed at a time.
_PART = 1024


def learn_residual_layers(
    layer1_atoms: Any,
    X: Any,
    n_atoms_per_layer: Sequence[int],
    betas: Sequence[float],
    n_neighbors: Sequence[int | None],
    tol: float,
    l1_radius: float = 0.35,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> list[Array]:
    """Learn the dictionaries of layers 2, 3, ...

    Parameters
    ----------
    layer1_atoms : array-like (D_1, m)
    X : array-like (n, m)
        Descriptors of training images.
    n_atoms_per_layer : sequence of int
        D_2, D_3, ...; may be empty.
    betas, n_neighbors : sequences
        Settings of the coding; one value per layer, layer 1 included.
    tol : float
        Of the coding.
    l1_radius : float, default 0.35
    random_state : None, int, numpy SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    layers : list of ndarrays (D_l, m)
        One per deeper layer, without layer 1.
    """
    layers = [check_matrix("layer1_atoms", layer1_atoms, "atom")]
    X = check_matrix("X", X, "descriptor", n_columns=layers[0].shape[1]).astype(layers[0].dtype, copy=False)
    l1_radius = check_number("l1_radius", l1_radius, above=True)
    sizes = [check_count("n_atoms_per_layer", size) for size in n_atoms_per_layer]
    for size, seed in zip(sizes, seed_sequence(random_state).spawn(len(sizes)), strict=True):
        rng = np.random.default_rng(seed)
        n = len(layers)
        coder = ResidualCoder(layers, betas[:n], n_neighbors[:n], tol)
        blocks = (X[start : start + _PART] for start in range(0, len(X), _PART))
        directions = np.concatenate(list(map_threads(coder.compute_directions, blocks, n_jobs)))
        if len(directions) == 0:  # every descriptor is an atom: all residuals are zero, any direction will do
            directions = layers[0]
        if len(directions) > MAX_DIRECTIONS:
            directions = directions[np.sort(rng.choice(len(directions), MAX_DIRECTIONS, replace=False))]
        atoms = learn_dictionary(directions, size, l1_radius, random_state=int(rng.integers(2**31))).atoms
        layers.append(atoms.astype(layers[0].dtype, copy=False))
    return layers[1:]

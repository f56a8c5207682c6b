"""Parameters of first-order pooling: a shared dictionary, principal directions, and statistics around its atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding import encode
from ddlcn.coding.first_order import FirstOrderModel, to_unit_norm
from ddlcn.dictionaries.learn import learn_dictionary
from ddlcn.utils.validation import check_count, check_matrix, seed_sequence

Array = NDArray[Any]

# Principal directions that are kept, at most.
N_DIRECTIONS = 32
# Descriptors with a norm below this part of the median norm come from nearly flat patches.
FLAT = 0.05
# The smallest standard deviation, where all descriptors of an atom are alike: over all atoms that of y is one.
MIN_SCALE = 0.1


def learn_first_order(
    X: Any,
    n_atoms: int,
    beta: float,
    n_neighbors: int | None,
    tol: float,
    l1_radius: float = 0.35,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> FirstOrderModel:
    """Learn a shared dictionary and the statistics around its atoms.

    Parameters
    ----------
    X : array-like (n, m)
        Descriptors of training images.
    n_atoms : int
        At most n.
    beta, n_neighbors, tol
        Settings of the coding.
    l1_radius : float, default 0.35
    random_state : None, int, numpy SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    FirstOrderModel
    """
    X = check_matrix("X", X, "descriptor")
    n_atoms = check_count("n_atoms", n_atoms)
    floor = max(FLAT * float(np.median(np.linalg.norm(X, axis=1))), float(np.finfo(X.dtype).tiny))
    unit = to_unit_norm(X, floor)
    seed = int(np.random.default_rng(seed_sequence(random_state)).integers(2**31))
    atoms = learn_dictionary(unit, n_atoms, l1_radius, random_state=seed).atoms.astype(X.dtype, copy=False)

    centre = unit.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(np.cov(unit.T.astype(np.float64)))  # ascending
    kept = np.flatnonzero(variances > 1e-9 * max(variances[-1], 1e-300))[::-1][:N_DIRECTIONS]
    # Contiguous, as it comes out of a model file: products round the same.
    basis = np.ascontiguousarray(directions[:, kept] / np.sqrt(variances[kept]))  # (m, directions)

    Y = (unit - centre) @ basis
    codes = encode(unit, atoms, beta, n_neighbors, tol=tol, n_jobs=n_jobs).codes
    codes.data = np.maximum(codes.data, 0.0)
    uses = np.maximum(codes.sum(axis=0), 1e-12)  # (D,)
    means = (codes.T @ Y) / uses[:, None]
    scales = np.sqrt(np.maximum((codes.T @ Y**2) / uses[:, None] - means**2, MIN_SCALE**2))
    dtype = X.dtype
    return FirstOrderModel(
        atoms, basis.astype(dtype, order="C"), centre.astype(dtype), means.astype(dtype), scales.astype(dtype),
        (uses / uses.sum()).astype(dtype), floor,
    )  # fmt: skip

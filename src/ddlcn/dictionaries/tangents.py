"""What tangents are taken with: a shared dictionary, directions, and where descriptors lie around its atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn._validation import check_count, check_matrix, seed_sequence
from ddlcn.coding import encode
from ddlcn.coding.tangents import TangentModel, to_length_one
from ddlcn.dictionaries.learn import learn_dictionary

Array = NDArray[Any]

# Directions of largest variance that are kept, if descriptors have so many.
N_DIRECTIONS = 32
# Descriptors shorter than this share of the middle length are patches with next to nothing on them.
FLAT = 0.05
# The least deviation, where all descriptors of an atom are alike: y has deviation one over all atoms.
LEAST_SCALE = 0.1


def learn_tangents(
    X: Any,
    n_atoms: int,
    beta: float,
    n_neighbors: int | None,
    tol: float,
    l1_radius: float = 0.35,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> TangentModel:
    """Learn a shared dictionary and the statistics around its atoms.

    Parameters
    ----------
    X : array-like (n, m)
        Descriptors of training images.
    n_atoms : int
        At most n.
    beta, n_neighbors, tol
        How the atoms will code.
    l1_radius : float, default 0.35
    random_state : None, int, numpy SeedSequence, Generator or RandomState
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    TangentModel
    """
    X = check_matrix("X", X, "descriptor")
    n_atoms = check_count("n_atoms", n_atoms)
    floor = max(FLAT * float(np.median(np.linalg.norm(X, axis=1))), float(np.finfo(X.dtype).tiny))
    unit = to_length_one(X, floor)
    seed = int(np.random.default_rng(seed_sequence(random_state)).integers(2**31))
    atoms = learn_dictionary(unit, n_atoms, l1_radius, random_state=seed).atoms.astype(X.dtype, copy=False)

    centre = unit.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(np.cov(unit.T.astype(np.float64)))  # ascending
    kept = np.flatnonzero(variances > 1e-9 * max(variances[-1], 1e-300))[::-1][:N_DIRECTIONS]
    basis = directions[:, kept] / np.sqrt(variances[kept])  # (m, directions)

    Y = (unit - centre) @ basis
    codes = encode(unit, atoms, beta, n_neighbors, tol=tol, n_jobs=n_jobs).codes
    codes.data = np.maximum(codes.data, 0.0)
    uses = np.maximum(codes.sum(axis=0), 1e-12)  # (D,)
    means = (codes.T @ Y) / uses[:, None]
    scales = np.sqrt(np.maximum((codes.T @ Y**2) / uses[:, None] - means**2, LEAST_SCALE**2))
    dtype = X.dtype
    return TangentModel(
        atoms, basis.astype(dtype), centre.astype(dtype), means.astype(dtype), scales.astype(dtype),
        (uses / uses.sum()).astype(dtype), floor,
    )  # fmt: skip

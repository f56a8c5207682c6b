"""Locality-constrained linear coding (Wang et al. 2010), the l2 counterpart of the coder of `locality`, for comparison.

    min_z  ||x - z V||^2 + beta * sum_j zeta_j^2 z_j^2     subject to  sum_j z_j = 1,    zeta_j = ||x - v_j||

over the k nearest atoms. With C of docs/method.md ("Coding") the solution is a linear system:
(C + beta diag C) z ~ 1, scaled to sum to one. Every one of the k atoms gets a code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding.locality import CodeBlock

# Part of the trace that is added to the diagonal, for beta = 0 or an atom equal to the descriptor, as LLC's code does.
RIDGE = 1e-10


class LLCCoder:
    """A dictionary prepared for LLC.

    Parameters
    ----------
    atoms : ndarray (atoms, m)
    beta : float
    n_neighbors : int or None
        None, or more than the number of atoms, means all.
    """

    def __init__(self, atoms: NDArray[Any], beta: float, n_neighbors: int | None) -> None:
        self._atoms = atoms
        self._beta = beta
        self._half_norms = 0.5 * np.einsum("ij,ij->i", atoms, atoms)
        self.n_atoms, self.n_dimensions = atoms.shape
        self.dtype = atoms.dtype
        self.width = self.n_atoms if n_neighbors is None else min(n_neighbors, self.n_atoms)

    def encode_block(self, X: NDArray[Any]) -> CodeBlock:
        """Code a block of descriptors (n, m), in the calling thread."""
        n, k = len(X), self.width
        keys = self._half_norms - X @ self._atoms.T  # (n, atoms), ordered as distances are
        nearest = np.sort(np.argpartition(keys, k - 1, axis=1)[:, :k], axis=1)  # (n, k)
        R = self._atoms[nearest].astype(np.float64) - X[:, None, :]  # (n, k, m)
        C = R @ R.transpose(0, 2, 1)  # (n, k, k)
        diagonal = np.einsum("nii->ni", C)
        diagonal *= 1.0 + self._beta
        diagonal += RIDGE * diagonal.sum(axis=1, keepdims=True) + np.finfo(np.float64).tiny
        z = np.linalg.solve(C, np.ones((n, k, 1)))[..., 0]
        z /= z.sum(axis=1, keepdims=True)
        return CodeBlock(nearest.astype(np.int32), z, np.full(n, k, np.int32), np.zeros(n))

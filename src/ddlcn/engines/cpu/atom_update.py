"""What dictionary learning does after coding, compiled: the sums of the codes, the update of the atoms.

In come a batch of descriptors X with its codes Z (CSR); A = sum Z^T Z and B = sum Z^T X are brought up to
date; then a block of atoms V moves to lower 1/2 tr(V^T A V) - tr(V^T B), which is the objective of DESIGN
section 2, "Layer 1 dictionary", with the codes held fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import kernel

Floats = NDArray[Any]


@kernel
def add_statistics(X: Floats, indptr: Any, indices: Any, values: Floats, weight: float, A: Floats, B: Floats) -> None:
    """Add `weight` times the sums of a batch: A += weight * Z^T Z, B += weight * Z^T X.

    Parameters
    ----------
    X : ndarray (n, m)
    indptr, indices, values : ndarrays (n + 1,), (nnz,), (nnz,)
        The codes Z (n, atoms) in CSR.
    weight : float
        Negative to take sums away again.
    A : ndarray (atoms, atoms) of float64, changed in place
    B : ndarray (atoms, m) of float64, changed in place
    """
    for i in range(X.shape[0]):
        row = X[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            value = weight * values[p]
            for q in range(indptr[i], indptr[i + 1]):
                A[j, indices[q]] += value * values[q]
            target = B[j]
            for k in range(row.size):
                target[k] += value * row[k]


@kernel
def update_block(V: Floats, R: Floats, A: Floats, start: int, floor: float) -> None:
    """Block coordinate descent over a block of atoms: each in turn to its minimiser in the unit ball.

    v_j <- project(v_j + (B_j - A_j V) / A_jj); atoms with A_jj <= floor, which nobody uses, stay as they are.

    Parameters
    ----------
    V : ndarray (atoms, m), changed in place
    R : ndarray (block, m), of V's dtype, overwritten
        B - A V on the rows of the block, at the V that comes in.
    A : ndarray (atoms, atoms) of float64
    start : int
    floor : float
    """
    size, m = R.shape
    change = np.empty(m)
    for p in range(size):
        j = start + p
        if A[j, j] <= floor:
            continue
        inverse = 1.0 / A[j, j]
        squares = 0.0
        for k in range(m):
            change[k] = V[j, k] + R[p, k] * inverse
            squares += change[k] * change[k]
        shrink = 1.0 / np.sqrt(squares) if squares > 1.0 else 1.0
        for k in range(m):
            moved = R.dtype.type(change[k] * shrink)
            change[k] = moved - V[j, k]
            V[j, k] = moved
        # The rest of the block must see the moved atom; the next block's R is computed from the new V anyway.
        for q in range(p + 1, size):
            factor = A[start + q, j]
            if factor != 0.0:
                for k in range(m):
                    R[q, k] -= factor * change[k]

"""The dictionary update that follows coding: the sufficient statistics of the codes, and the update of the atoms.

In: a batch of descriptors X and its codes Z (CSR). A = sum Z^T Z and B = sum Z^T X are updated; then a block of atoms V
is moved to lower 1/2 tr(V^T A V) - tr(V^T B), the objective of docs/method.md, "Layer 1 dictionary", at fixed codes.
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
        Negative to subtract sums.
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
def replace_statistics(X: Floats, old: Any, old_weight: float, decay: float, new: Any, A: Floats, B: Floats) -> None:
    """Subtract a batch's old codes (if it has any: `old_weight` > 0), decay the sums (if below 1), add its new codes.

    `old` and `new` are codes in CSR, (indptr, indices, values); the rest as in `add_statistics`.
    """
    if old_weight > 0.0:
        add_statistics(X, old[0], old[1], old[2], -old_weight, A, B)
    if decay < 1.0:
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                A[i, j] *= decay
            for k in range(B.shape[1]):
                B[i, k] *= decay
    add_statistics(X, new[0], new[1], new[2], 1.0, A, B)


@kernel
def update_block(V: Floats, R: Floats, A: Floats, start: int, floor: float) -> None:
    """Block coordinate descent over a block of atoms: each in turn moves to its minimiser in the unit ball.

    v_j <- project(v_j + (B_j - A_j V) / A_jj); atoms with A_jj <= floor (unused) stay unchanged.

    Parameters
    ----------
    V : ndarray (atoms, m), changed in place
    R : ndarray (block, m), of V's dtype, overwritten
        B - A V on the rows of the block, at the given V.
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
        # Update the rows of the remaining atoms of the block; the next block's R is computed from the new V.
        for q in range(p + 1, size):
            factor = A[start + q, j]
            if factor != 0.0:
                for k in range(m):
                    R[q, k] -= factor * change[k]

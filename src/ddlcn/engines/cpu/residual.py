"""Residuals of coded descriptors, and the concatenated codes of all layers (docs/method.md 2.2).

A row here is one *use*: one descriptor and one of the layer 1 atoms in its code, descriptor after descriptor, atoms
ascending. Its residual is stored as a direction (m,) of unit norm and a length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel


@inlined
def to_direction(row: Any, squares: float) -> float:
    """Scale a residual to unit norm, in place; returns its length. A residual of zero stays zero."""
    length: float = np.sqrt(squares)
    if length > 0.0:
        for c in range(row.shape[0]):
            row[c] /= length
    return length


@kernel
def compute_residuals(X: Any, D: Any, indices: Any, counts: Any, directions: Any, lengths: Any) -> None:
    """x - v_j for every use.

    Parameters
    ----------
    X : (n, m); D : (atoms, m)
        Descriptors, and the atoms of layer 1.
    indices : (n, width) int32; counts : (n,) int32
        The atoms that each descriptor uses.
    directions : (uses, m), lengths : (uses,) float64
        Results.
    """
    use = 0
    for i in range(X.shape[0]):
        for s in range(counts[i]):
            atom = indices[i, s]
            squares = 0.0
            for c in range(X.shape[1]):
                difference = X[i, c] - D[atom, c]
                directions[use, c] = difference
                squares += np.float64(difference) * np.float64(difference)
            lengths[use] = to_direction(directions[use], squares)
            use += 1


@kernel
def project_residuals(
    X: Any, P: Any, Q: Any, indices: Any, counts: Any, atom_norms: Any, lengths: Any, H: Any, looseness: Any
) -> None:
    """Products of all directions with the atoms u of a layer, from those of descriptors and of layer 1 atoms.

    (x - v_j) / ||x - v_j|| . u  =  (x . u - v_j . u) / ||x - v_j||: one product per descriptor in place of one per use.

    Parameters
    ----------
    X : (n, m), the descriptors
    P : (n, atoms) float32, x . u; Q : (layer 1 atoms, atoms) float32, v . u
    indices : (n, width) int32; counts : (n,) int32
        The layer 1 atoms that each descriptor uses.
    atom_norms : (layer 1 atoms,) float64, ||v||
    lengths : (uses,) float64, ||x - v_j||
    H : (uses, atoms) float32
        Result.
    looseness : (uses,) float64
        Result: by how much the difference enlarges the error of a float32 product; see `code_nearest`.
    """
    use = 0
    for i in range(P.shape[0]):
        squares = 0.0
        for c in range(X.shape[1]):
            squares += np.float64(X[i, c]) * np.float64(X[i, c])
        norm = np.sqrt(squares)
        for s in range(counts[i]):
            atom, length = indices[i, s], lengths[use]
            scale = np.float32(1.0 / length) if length > 0.0 else np.float32(0.0)
            for c in range(P.shape[1]):
                H[use, c] = (P[i, c] - Q[atom, c]) * scale
            looseness[use] = 3.0 + (2.0 * (norm + atom_norms[atom]) / length if length > 0.0 else 0.0)
            use += 1


@kernel
def reduce_residuals(
    directions: Any, lengths: Any, U: Any, indices: Any, values: Any, counts: Any, is_last: bool, scales: Any
) -> None:
    """Subtract a layer's approximation from every residual: r - scale * (gamma U), in place.

    With `is_last` only the scales are computed: nobody looks at what the last layer leaves.

    The scale leaves the shortest residual; it is 0 where gamma U points away from it, since codes that must sum to one
    may overshoot a direction that is far from every atom.

    Parameters
    ----------
    directions : (uses, m), lengths : (uses,)
    U : (atoms, m)
    indices, values : (uses, width); counts : (uses,)
        Codes gamma of the directions over U.
    scales : (uses,) float64
        Result.
    """
    m = directions.shape[1]
    coded = np.empty(m)
    for use in range(directions.shape[0]):
        row = directions[use]
        coded[:] = 0.0
        for s in range(counts[use]):
            atom, gamma = indices[use, s], values[use, s]
            for c in range(m):
                coded[c] += gamma * U[atom, c]
        along, squares = 0.0, 0.0
        for c in range(m):
            along += row[c] * coded[c]
            squares += coded[c] * coded[c]
        step = along / squares if along > 0.0 else 0.0
        scales[use] = lengths[use] * step
        if is_last:
            continue
        squares = 0.0
        for c in range(m):
            left = row[c] - step * coded[c]
            row[c] = left
            squares += left * left
        lengths[use] *= to_direction(row, squares)


@kernel
def append_codes(
    indices: Any, values: Any, counts: Any, scales: Any,
    deep_indices: Any, deep_values: Any, deep_counts: Any, deep_kkt: Any,
    n_deep: int, offset: int, out_indices: Any, out_values: Any, out_counts: Any, out_kkt: Any,
) -> None:  # fmt: skip
    """Append the columns of one deeper layer to every descriptor's concatenated code: z_j * scale * gamma.

    Parameters
    ----------
    indices, values : (n, width); counts : (n,)
        Codes z of layer 1.
    scales : (uses,)
        From `reduce_residuals`.
    deep_indices, deep_values : (uses, deep width); deep_counts, deep_kkt : (uses,)
        Codes gamma of the directions, and their certificates.
    n_deep, offset : int
        Atoms of this layer, and its first column: (j, u) stands in column offset + j * n_deep + u.
    out_indices, out_values : (n, total width); out_counts, out_kkt : (n,)
        The concatenated codes so far, where they end, and the largest certificate so far.
    """
    use = 0
    for i in range(counts.shape[0]):
        at = out_counts[i]
        for s in range(counts[i]):
            first = offset + indices[i, s] * n_deep
            weight = values[i, s] * scales[use]
            out_kkt[i] = max(out_kkt[i], deep_kkt[use])
            if weight != 0.0:
                for t in range(deep_counts[use]):
                    out_indices[i, at] = first + deep_indices[use, t]
                    out_values[i, at] = weight * deep_values[use, t]
                    at += 1
            use += 1
        out_counts[i] = at

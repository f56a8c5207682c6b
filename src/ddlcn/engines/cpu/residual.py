"""Residuals of coded descriptors, and the codes of all layers as one long code (DESIGN 2.2).

A row here is one *use*: one descriptor and one of the layer 1 atoms in its code, descriptor after descriptor, atoms
ascending. Its residual is kept as a direction (m,) of length one, and a length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel


@inlined
def to_direction(row: Any, squares: float) -> float:
    """Scale a residual to length one, in place; returns its length. A residual of zero stays zero."""
    length: float = np.sqrt(squares)
    if length > 0.0:
        for c in range(row.shape[0]):
            row[c] /= length
    return length


@kernel
def take_residuals(X: Any, D: Any, indices: Any, counts: Any, directions: Any, lengths: Any) -> None:
    """x - v_j for every use.

    Parameters
    ----------
    X : (n, m); D : (atoms, m)
        Descriptors, and the atoms of layer 1.
    indices : (n, width) int32; counts : (n,) int32
        Which atoms each descriptor uses.
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
def reduce_residuals(
    directions: Any, lengths: Any, U: Any, indices: Any, values: Any, counts: Any, scales: Any
) -> None:
    """Take from every residual what a layer has coded of it: r - scale * (gamma U), in place.

    The scale is the one that leaves the shortest residual, or 0 where gamma U points away from it: codes that must sum
    to one may reach far beyond a direction that no atom is near to.

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
        squares = 0.0
        for c in range(m):
            left = row[c] - step * coded[c]
            row[c] = left
            squares += left * left
        lengths[use] *= to_direction(row, squares)


@kernel
def append_codes(
    indices: Any, values: Any, counts: Any, scales: Any, deep_indices: Any, deep_values: Any, deep_counts: Any,
    n_deep: int, offset: int, out_indices: Any, out_values: Any, out_counts: Any,
) -> None:  # fmt: skip
    """Add the columns of one deeper layer to every descriptor's long code: z_j * scale * gamma.

    Parameters
    ----------
    indices, values : (n, width); counts : (n,)
        Codes z of layer 1.
    scales : (uses,)
        From `reduce_residuals`.
    deep_indices, deep_values : (uses, deep width); deep_counts : (uses,)
        Codes gamma of the directions.
    n_deep, offset : int
        Atoms of this layer, and its first column: (j, u) stands in column offset + j * n_deep + u.
    out_indices, out_values : (n, long width); out_counts : (n,)
        The long codes so far, and where they end.
    """
    use = 0
    for i in range(counts.shape[0]):
        at = out_counts[i]
        for s in range(counts[i]):
            first = offset + indices[i, s] * n_deep
            weight = values[i, s] * scales[use]
            if weight != 0.0:
                for t in range(deep_counts[use]):
                    out_indices[i, at] = first + deep_indices[use, t]
                    out_values[i, at] = weight * deep_values[use, t]
                    at += 1
            use += 1
        out_counts[i] = at

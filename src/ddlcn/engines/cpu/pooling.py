"""Pyramid max pooling of coded descriptors, image by image, to sparse features (docs/method.md, "Pooling", 2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel


@inlined
def signed_power(value: float, power: float) -> float:
    """sign(v) |v|^power."""
    if power == 1.0:
        return value
    magnitude: float = abs(value) ** power
    return magnitude if value > 0.0 else -magnitude


@inlined
def with_absent(extreme: float, uses: int, n_members: int) -> float:
    """The maximum over all of a cell's descriptors: those that do not use the atom count as 0."""
    return extreme if uses == n_members else max(extreme, 0.0)


@kernel
def pool_codes(
    indices: Any, values: Any, counts: Any, cells: Any, starts: Any, n_cells: int, plus: Any, minus: Any, power: float,
    out_columns: Any, out_values: Any, out_winners: Any, out_ends: Any,
) -> None:  # fmt: skip
    """Pool the codes of a batch of images; each feature has unit norm.

    Parameters
    ----------
    indices, values : (n, width) int32, float64; counts : (n,) int32
        Codes of the descriptors of all images, one after the other.
    cells : (n, levels) int32
        The cell of every descriptor on every level of the pyramid.
    starts : (images + 1,) int64
        Where each image's descriptors begin.
    plus, minus : (atoms,) float64
        Weights of max z and of max -z in the feature: sqrt(P), sqrt(N) of docs/method.md 2.1 (of their powers if
        power != 1). Where minus is empty the feature has no second half.
    out_columns, out_values : (capacity,) int32, float32
        Nonzeros, image after image, columns ascending: first (cells, atoms) of max z, then the same of max -z.
    out_winners : (capacity,) int64
        The code that each nonzero comes from, as an index into the flattened `values`; of several alike the first.
    out_ends : (images,) int64
        Where each image's nonzeros end.
    """
    n_atoms, n_levels = plus.shape[0], cells.shape[1]
    last_half = 0 if minus.shape[0] == 0 else 1
    highest, lowest = np.empty((n_cells, n_atoms)), np.empty((n_cells, n_atoms))
    winners = np.empty((2, n_cells, n_atoms), np.int64)
    uses = np.zeros((n_cells, n_atoms), np.int32)
    members = np.zeros(n_cells, np.int64)
    end = 0
    for image in range(starts.shape[0] - 1):
        members[:] = 0
        for i in range(starts[image], starts[image + 1]):
            for level in range(n_levels):
                cell = cells[i, level]
                members[cell] += 1
                for s in range(counts[i]):
                    atom, z = indices[i, s], values[i, s]
                    is_first = uses[cell, atom] == 0
                    if is_first or z > highest[cell, atom]:
                        highest[cell, atom] = z
                        winners[0, cell, atom] = i * values.shape[1] + s
                    if is_first or z < lowest[cell, atom]:
                        lowest[cell, atom] = z
                        winners[1, cell, atom] = i * values.shape[1] + s
                    uses[cell, atom] += 1
        begin = end
        squares = 0.0
        for half in range(last_half + 1):
            for cell in range(n_cells):
                if members[cell] == 0:
                    continue
                for atom in range(n_atoms):
                    n_uses = uses[cell, atom]
                    if n_uses == 0:
                        continue
                    extreme = highest[cell, atom] if half == 0 else -lowest[cell, atom]
                    weight = plus[atom] if half == 0 else minus[atom]
                    value = weight * signed_power(with_absent(extreme, n_uses, members[cell]), power)
                    if value != 0.0:
                        out_columns[end] = (half * n_cells + cell) * n_atoms + atom
                        out_values[end] = value
                        out_winners[end] = winners[half, cell, atom]
                        squares += value * value
                        end += 1
                    if half == last_half:
                        uses[cell, atom] = 0
        if squares > 0.0:
            scale = 1.0 / np.sqrt(squares)
            for s in range(begin, end):
                out_values[s] *= scale
        out_ends[image] = end

"""Weighted sums of descriptors around the atoms that they use, cell by cell (see `ddlcn.coding.first_order`)."""

from __future__ import annotations

from typing import Any

from ddlcn.engines.compile import kernel


@kernel
def sum_first_order(
    Y: Any, indices: Any, values: Any, counts: Any, cells: Any, images: Any, sums: Any, weights: Any
) -> None:
    """Add z * y to the sums, and z to the weights, of every atom with a code z above zero, in each cell.

    Parameters
    ----------
    Y : (n, directions) float32
    indices, values : (n, width) int32, float64; counts : (n,) int32
        Codes.
    cells : (n, levels) int32; images : (n,) int64
        The cells and the image of each descriptor.
    sums : (images, cells, atoms, directions) float32; weights : (images, cells, atoms) float32
        Results.
    """
    for i in range(Y.shape[0]):
        image = images[i]
        for s in range(counts[i]):
            atom, z = indices[i, s], values[i, s]
            if z <= 0.0:
                continue
            for level in range(cells.shape[1]):
                cell = cells[i, level]
                weights[image, cell, atom] += z
                for c in range(Y.shape[1]):
                    sums[image, cell, atom, c] += z * Y[i, c]

"""Weighted sums of descriptors around the atoms that they use, cell by cell (see `ddlcn.coding.first_order`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import kernel


@kernel
def scale_to_unit_norm(X: Any, floor: float, out: Any) -> None:
    """out (n, m): rows of X (n, m) divided by their norm, or by `floor` if that is larger; one pass, in float64."""
    n, m = X.shape
    for i in range(n):
        squares = 0.0
        for c in range(m):
            squares += np.float64(X[i, c]) * np.float64(X[i, c])
        norm = max(np.sqrt(squares), floor)
        for c in range(m):
            out[i, c] = np.float64(X[i, c]) / norm


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


@kernel
def spread_first_order(
    Y: Any, indices: Any, values: Any, counts: Any, cells: Any, images: Any, sums: Any, weights: Any, out: Any
) -> None:
    """The backward pass of `sum_first_order`: out (n, width), the gradient of every code above zero.

    Parameters are its parameters, except
    sums : (images, cells, atoms, directions); weights : (images, cells, atoms)
        Gradients with respect to its results.
    """
    for i in range(Y.shape[0]):
        image = images[i]
        for s in range(counts[i]):
            if values[i, s] <= 0.0:
                continue
            atom, total = indices[i, s], 0.0
            for level in range(cells.shape[1]):
                cell = cells[i, level]
                total += weights[image, cell, atom]
                for c in range(Y.shape[1]):
                    total += sums[image, cell, atom, c] * Y[i, c]
            out[i, s] = total


@kernel
def finish_first_order(
    sums: Any, weights: Any, means: Any, inverse_scales: Any, out_columns: Any, out_values: Any, out_ends: Any
) -> None:
    """Deviations from the means, relative to a cell's total weight, as signed square roots; each image of unit norm.

    Parameters
    ----------
    sums : (images, cells, atoms, directions) float32; weights : (images, cells, atoms) float32
        From `sum_first_order`.
    means, inverse_scales : (atoms, directions) float32
    out_columns, out_values : (capacity,) int32, float32
        Nonzeros, image after image, columns ascending.
    out_ends : (images,) int64
        Where each image's nonzeros end.
    """
    n_images, n_cells, n_atoms, n_directions = sums.shape
    end = 0
    for image in range(n_images):
        begin, squares = end, 0.0
        for cell in range(n_cells):
            total = 0.0
            for atom in range(n_atoms):
                total += weights[image, cell, atom]
            for atom in range(n_atoms):
                weight = weights[image, cell, atom]
                if weight == 0.0:
                    continue
                first = (cell * n_atoms + atom) * n_directions
                for c in range(n_directions):
                    value = (sums[image, cell, atom, c] - weight * means[atom, c]) * inverse_scales[atom, c] / total
                    root = np.sqrt(abs(value))
                    squares += abs(value)
                    out_columns[end + c] = first + c
                    out_values[end + c] = root if value > 0.0 else -root
                end += n_directions
        if squares > 0.0:
            norm = np.sqrt(squares)
            for s in range(begin, end):
                out_values[s] /= norm
        out_ends[image] = end

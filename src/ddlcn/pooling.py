"""Codes of an image's descriptors in, one feature per image out: the spatial pyramid (docs/method.md, "Pooling", 2.1).

In each cell, for each atom: M = max z and m = max -z over the cell's descriptors, where a descriptor that does not use
the atom counts as 0 and an empty cell is 0. The feature is [sqrt(P) * M, sqrt(N) * m], scaled to unit norm, with the
path weights P and N of `coding.augmented`: the whole of an n-layer network in 2 * atoms * cells numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.locality import CodeBlock
from ddlcn.engines import get_engine
from ddlcn.utils.sparse_rows import make_csr
from ddlcn.utils.validation import check_count


def check_pyramid(pyramid: Any) -> tuple[int, ...]:
    """The pyramid's levels: (1, 2, 4) means 1 x 1, 2 x 2 and 4 x 4 cells."""
    if isinstance(pyramid, str) or not hasattr(pyramid, "__iter__") or len(tuple(pyramid)) == 0:
        raise ValueError(f"pyramid must be a tuple of cells per side, such as (1, 2, 4); got {pyramid!r}")
    return tuple(check_count("pyramid", level) for level in pyramid)


def count_cells(pyramid: tuple[int, ...]) -> int:
    """Cells of all levels together: 21 for (1, 2, 4)."""
    return sum(level * level for level in pyramid)


def assign_cells(xy: NDArray[Any], image_shape: tuple[int, int], pyramid: tuple[int, ...]) -> NDArray[np.int32]:
    """The cell of every descriptor on every level.

    Parameters
    ----------
    xy : ndarray (n, 2)
        Patch centres, 0-based pixels.
    image_shape : (H, W)
    pyramid : tuple of int
        Cells per side, per level.

    Returns
    -------
    cells : ndarray (n, levels), int32
        Cells are numbered level by level, row by row.
    """
    height, width = image_shape
    # The middle of pixel x lies at x + 0.5. Positions are halves, so this is exact in float64.
    x, y = (xy.astype(np.float64) + 0.5).T
    cells = np.empty((len(xy), len(pyramid)), np.int32)
    before = 0
    for l, level in enumerate(pyramid):
        columns = np.minimum(np.floor(x * level / width).astype(np.int32), level - 1)
        rows = np.minimum(np.floor(y * level / height).astype(np.int32), level - 1)
        cells[:, l] = before + rows * level + columns
        before += level * level
    return cells


class Pooled(NamedTuple):
    """Features of a batch of images, and where they come from."""

    features: Any  # csr_array (images, columns), float32, rows of unit norm
    winners: NDArray[np.int64]  # (nonzeros,): the code behind each nonzero, an index into the flattened values


def pool(
    codes: CodeBlock,
    cells: NDArray[np.int32],
    starts: NDArray[np.int64],
    pyramid: tuple[int, ...],
    plus: NDArray[np.float64],
    minus: NDArray[np.float64] | None,
    power: float = 1.0,
) -> Pooled:
    """Features of a batch of images, and the code that each of their nonzeros comes from.

    Parameters
    ----------
    codes : CodeBlock
        Codes of all descriptors of the batch (n of them), image after image.
    cells : ndarray (n, levels), int32
        From `assign_cells`.
    starts : ndarray (images + 1,)
        Where each image's descriptors begin, and where the last one's end.
    pyramid : tuple of int
    plus, minus : ndarray (atoms,)
        Weights of M and m: sqrt(P) and sqrt(N). Where `minus` is None there is no second half.
    power : float
        The pooled values v become sign(v) |v|^power before they are weighted.

    Returns
    -------
    Pooled
        The features are a scipy.sparse.csr_array (images, halves * cells * atoms). Column (half * cells + cell) * atoms
        + atom, half 0 for M and 1 for m.
    """
    n_halves = 1 if minus is None else 2
    n_images, n_columns = len(starts) - 1, n_halves * count_cells(pyramid) * len(plus)
    capacity = n_halves * len(pyramid) * int(codes.counts.sum())
    columns, values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    winners, ends = np.empty(capacity, np.int64), np.zeros(n_images + 1, np.int64)
    get_engine().pool_codes(
        codes.indices, codes.values, codes.counts, cells, starts, count_cells(pyramid), plus,
        np.empty(0) if minus is None else minus, power, columns, values, winners, ends[1:],
    )  # fmt: skip
    n = int(ends[-1])
    return Pooled(make_csr(values[:n], columns[:n], ends, (n_images, n_columns)), winners[:n])


def attribute(
    codes: CodeBlock,
    cells: NDArray[np.int32],
    pyramid: tuple[int, ...],
    plus: NDArray[np.float64],
    minus: NDArray[np.float64] | None,
    power: float = 1.0,
) -> Any:
    """Split the feature of one image among its descriptors: a pooled value belongs to the one that it comes from.

    Parameters are those of `pool`, of one image with n descriptors.

    Returns
    -------
    parts : csr_array (n, columns), float32
        One nonzero for every nonzero of the feature; the sum of the rows is the feature.
    """
    pooled = pool(codes, cells, np.array([0, len(cells)]), pyramid, plus, minus, power)
    feature, owner = pooled.features, pooled.winners // codes.values.shape[1]
    return sparse.csr_array((feature.data, (owner, feature.indices)), shape=(len(cells), feature.shape[1]))


def raise_to_power(features: Any, power: float) -> Any:
    """The features of another pooling power from those pooled with power one and weights one.

    Parameters
    ----------
    features : csr_array (images, columns)
    power : float

    Returns
    -------
    csr_array (images, columns), float32
        sign(v) |v|^power, rows of unit norm. (That the rows had unit norm before makes no difference.)
    """
    return _scale_rows(features, np.sign(features.data) * np.abs(features.data.astype(np.float64)) ** power)


def _scale_rows(features: Any, values: NDArray[Any]) -> Any:
    """A csr_array with other values, rows of unit norm."""
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    lengths = np.sqrt(np.bincount(rows, values * values, minlength=features.shape[0]))
    values = values / np.where(lengths > 0.0, lengths, 1.0)[rows]
    return make_csr(values.astype(np.float32), features.indices.copy(), features.indptr.copy(), features.shape)

"""The filters and features of PCANet (Chan et al. 2015): filters from pictures; counts from pictures and filters.

All in float32 and one picture at a time: patches and responses of many pictures are never in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import kernel
from ddlcn.utils.sparse_rows import make_csr
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Pictures that a thread works on at a time.
BATCH = 16
# Differs from the paper: responses up to this count as zero. In a flat patch they are zero up to rounding, whose sign
# is meaningless (float32, values up to about 1: some 1e-6); one grey level of 255 gives a response of about 5e-4.
FLAT = 1e-5


@dataclass(frozen=True)
class Grid:
    """Blocks of `height` x `width` pixels, at every pair of `tops` and `lefts`."""

    tops: NDArray[np.int64]
    lefts: NDArray[np.int64]
    height: int
    width: int

    @property
    def n_blocks(self) -> int:
        return len(self.tops) * len(self.lefts)

    @property
    def n_pixels(self) -> int:
        """Of one block."""
        return self.height * self.width


def find_starts(side: int, block: int, overlap: float) -> NDArray[np.int64]:
    """Where the blocks along one side start: as many as fit.

    Differs from the paper: they are centred, not aligned with the first pixel, so that both borders lose equally. No
    pixel is lost on Extended Yale B.
    """
    step = max(1, round((1.0 - overlap) * block))
    n = 1 + (side - block) // step
    return (side - block - (n - 1) * step) // 2 + step * np.arange(n)


def make_batches(n: int) -> list[slice]:
    """Batches of n pictures."""
    return [slice(start, min(start + BATCH, n)) for start in range(0, n, BATCH)]


def learn_filters(pictures: Array, n_filters: tuple[int, ...], size: int, n_jobs: int | None = None) -> list[Array]:
    """Filters (n, size, size) of every stage, from pictures (n, H, W) float32: patches are summed, never stored.

    Differs from the paper's text, not from its results: patch means are removed by projecting the sum X^T X, and
    filters are restricted to mean zero, so that they ignore the mean of their input.
    """
    filters: list[Array] = []
    mean = np.full((size * size, size * size), 1.0 / (size * size))  # projects on the constant patch
    centre = np.eye(size * size) - mean
    for n in n_filters:

        def sum_up(rows: slice) -> Array:
            total = np.zeros((size * size, size * size))
            for picture in pictures[rows]:
                maps = picture[None]
                for bank in filters:
                    maps = apply_filters(maps, bank)
                # Patch means are removed later; this keeps the sums small enough for float32.
                add_products(maps - maps.mean(axis=(1, 2), keepdims=True), size, total)
            return total

        total = sum(map_threads(sum_up, make_batches(len(pictures)), n_jobs), start=np.zeros_like(mean))
        total = np.triu(total) + np.triu(total, 1).T
        covariance = centre @ total @ centre
        # The constant patch gets the only negative eigenvalue, so it comes last even if all others are zero.
        _, vectors = np.linalg.eigh(covariance - (np.trace(covariance) + 1.0) * mean)
        found = vectors[:, ::-1][:, :n].T
        largest = np.take_along_axis(found, np.abs(found).argmax(axis=1)[:, None], axis=1)
        filters.append((found * np.sign(largest)).reshape(n, size, size).astype(np.float32))
    return filters


def apply_filters(maps: Array, filters: Array) -> Array:
    """Correlate maps (c, H, W) with filters (n, k, k), with zeros around the border: (c n, H, W)."""
    border = filters.shape[1] // 2
    padded = np.pad(maps, ((0, 0), (border, border), (border, border)))
    out = np.zeros((len(maps), len(filters), *maps.shape[1:]), maps.dtype)
    correlate(padded, filters, out)
    return out.reshape(-1, *maps.shape[1:])


def count_codes(pictures: Array, filters: list[Array], grid: Grid) -> Any:
    """Histograms of the codes in every block: csr_array (n, columns) of float32 counts.

    Columns are ordered by the map of the stage before, block and code; there are maps x blocks x 2^filters of them.
    """
    n_maps, n_bins = int(np.prod([len(bank) for bank in filters[:-1]])), 2 ** len(filters[-1])
    most = n_maps * grid.n_blocks * min(n_bins, grid.n_pixels)
    values, columns = np.empty(len(pictures) * most, np.float32), np.empty(len(pictures) * most, np.int32)
    starts = np.zeros(len(pictures) + 1, np.int64)
    border = filters[-1].shape[1] // 2
    for i, picture in enumerate(pictures):
        maps = picture[None]
        for bank in filters[:-1]:
            maps = apply_filters(maps, bank)
        padded = np.pad(maps, ((0, 0), (border, border), (border, border)))
        begin = starts[i]
        starts[i + 1] = begin + fill_histograms(
            padded, filters[-1], np.float32(FLAT), grid.tops, grid.lefts, grid.height, grid.width,
            values[begin:], columns[begin:],
        )  # fmt: skip
    end = starts[-1]
    return make_csr(values[:end].copy(), columns[:end].copy(), starts, (len(pictures), n_maps * grid.n_blocks * n_bins))


@kernel
def add_products(maps: Array, size: int, total: Array) -> None:
    """Add X^T X, its upper half, of all size x size patches of maps (c, H, W) to total (size^2, size^2)."""
    n_maps, height, width = maps.shape
    span = width - size + 1
    for c in range(n_maps):
        for y in range(height - size + 1):
            for a in range(size * size):
                left = maps[c, y + a // size, a % size : a % size + span]
                for b in range(a, size * size):
                    right = maps[c, y + b // size, b % size : b % size + span]
                    product = left[0] * right[0]
                    for x in range(1, span):
                        product += left[x] * right[x]
                    total[a, b] += product


@kernel
def correlate(padded: Array, filters: Array, out: Array) -> None:
    """out (c, n, H, W) += padded (c, H + k - 1, W + k - 1) correlated with filters (n, k, k)."""
    n_maps, n, height, width = out.shape
    size = filters.shape[1]
    for c in range(n_maps):
        for y in range(height):
            for f in range(n):
                line = out[c, f, y]
                for i in range(size):
                    for j in range(size):
                        weight, row = filters[f, i, j], padded[c, y + i, j:]
                        for x in range(width):
                            line[x] += weight * row[x]


@kernel
def fill_histograms(
    padded: Array, filters: Array, flat: Any, tops: Array, lefts: Array, height: int, width: int,
    values: Array, columns: Array,
) -> int:  # fmt: skip
    """Nonzero counts of codes, block by block and map by map, into values and columns; returns how many."""
    n, size = filters.shape[0], filters.shape[1]
    n_rows, n_columns = padded.shape[1] - size + 1, padded.shape[2] - size + 1
    codes = np.zeros((n_rows, n_columns), np.int32)
    line = np.empty(n_columns, padded.dtype)
    histogram = np.zeros(2**n, np.int32)
    filled, first = 0, 0
    for c in range(len(padded)):
        for y in range(n_rows):
            codes[y] = 0
            for f in range(n):
                line[:] = 0
                for i in range(size):
                    for j in range(size):
                        weight, row = filters[f, i, j], padded[c, y + i, j:]
                        for x in range(n_columns):
                            line[x] += weight * row[x]
                for x in range(n_columns):
                    codes[y, x] += (line[x] > flat) << f
        for top in tops:
            for left in lefts:
                for y in range(top, top + height):
                    for x in range(left, left + width):
                        histogram[codes[y, x]] += 1
                for code in range(len(histogram)):
                    if histogram[code] > 0:
                        values[filled], columns[filled] = histogram[code], first + code
                        filled += 1
                        histogram[code] = 0
                first += len(histogram)
    return filled

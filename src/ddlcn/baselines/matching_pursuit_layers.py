"""The layers of M-HMP (Bo, Ren and Fox 2013). In: a picture. Out: patches of its pixels, or of its pooled codes.

`baselines.matching_pursuit` has the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ddlcn.baselines.descriptor_base import NamedImages
from ddlcn.baselines.ksvd_learning import learn_ksvd
from ddlcn.coding import CodeBlock
from ddlcn.coding.omp import iter_blocks, pursue
from ddlcn.descriptors import Descriptors
from ddlcn.descriptors.store import describe
from ddlcn.images import read_image
from ddlcn.images.colour import read_colour_values
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Cells along the side of a patch of the second layer, and eps of its normalisation.
CELLS, EPS = 4, 0.1
# Images that patches are drawn from, at most; norm of a patch up to which it is flat.
MAX_IMAGES, MIN_NORM = 500, 1e-3


class OMPCoder:
    """Codes by orthogonal matching pursuit over atoms (atoms, m), rows of unit norm, for `ddlcn.blocks`."""

    def __init__(self, atoms: Array, n_nonzero: int) -> None:
        self._atoms, self._gram = atoms, atoms @ atoms.T
        self.n_atoms, self.n_dimensions = atoms.shape
        self.dtype = atoms.dtype
        self.width = min(n_nonzero, len(atoms))

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), in the calling thread."""
        columns, values, counts = pursue(X, self._atoms, self._gram, self.width)
        return CodeBlock(columns, values, counts, np.zeros(len(X)))


class RawPatches:
    """All size x size patches of a picture, every `step` pixels, without their means (of every colour).

    Parameters
    ----------
    size, step : int
    max_side : int
        Larger pictures are reduced to this longest side.
    least : int
        Smaller ones are enlarged to this shortest side.
    colour : bool
    """

    def __init__(self, size: int, step: int, max_side: int, least: int, colour: bool) -> None:
        self.size, self.step, self._max_side, self._least, self._colour = size, step, max_side, least, colour

    def describe(self, image: Any, name: str = "image") -> Descriptors:
        read: Any = read_colour_values if self._colour else read_image
        pixels = read(image, max_side=self._max_side, patch_size=self._least, name=name)
        pixels = pixels.reshape(*pixels.shape[:2], -1)  # (H, W, colours)
        views = sliding_window_view(pixels, (self.size, self.size), axis=(0, 1))[:: self.step, :: self.step]
        values = views.reshape(views.shape[0] * views.shape[1], pixels.shape[2], -1)
        values = values - values.mean(axis=2, keepdims=True)
        middles = 0.5 * (self.size - 1) + self.step * np.arange(max(views.shape[:2]))
        return Descriptors(
            np.ascontiguousarray(values.reshape(len(values), -1), np.float32),
            place(middles[: views.shape[0]], middles[: views.shape[1]]),
            (pixels.shape[0], pixels.shape[1]),
        )


class PooledCodes:
    """What the second layer sees: the pooled codes of 4 x 4 cells of a picture, for every place of cells.

    Parameters
    ----------
    patches : RawPatches
    atoms : ndarray (atoms, m)
    n_nonzero : int
    cell : int
        Side of a cell in pixels.
    """

    def __init__(self, patches: RawPatches, atoms: Array, n_nonzero: int, cell: int) -> None:
        self._patches, self._coder, self._cell = patches, OMPCoder(atoms, n_nonzero), cell

    def describe(self, image: Any, name: str = "image") -> Descriptors:
        found = self._patches.describe(image, name)
        height, width = found.image_shape
        n_rows, n_columns = height // self._cell, width // self._cell
        # Cells lie around the middle of the picture, as many as fit; what is left over goes to those at the border.
        row = place_cells(found.xy[:, 1], height, n_rows, self._cell)
        column = place_cells(found.xy[:, 0], width, n_columns, self._cell)
        pooled = np.zeros((n_rows * n_columns, 2 * self._coder.n_atoms), np.float32)
        for part in iter_blocks(len(found)):
            codes = self._coder.encode_block(found.values[part].astype(np.float64))
            item, slot = np.nonzero(np.arange(codes.indices.shape[1]) < codes.counts[:, None])
            z, atom = codes.values[item, slot].astype(np.float32), codes.indices[item, slot]
            where = (row[part] * n_columns + column[part])[item]
            np.maximum.at(pooled, (where, atom + self._coder.n_atoms * (z < 0)), np.abs(z))
        views = sliding_window_view(pooled.reshape(n_rows, n_columns, -1), (CELLS, CELLS), axis=(0, 1))
        values = views.reshape(views.shape[0] * views.shape[1], -1)
        values = values / np.sqrt(np.einsum("ij,ij->i", values, values) + EPS)[:, None]
        middles = [
            0.5 * (side - n * self._cell + CELLS * self._cell - 1) + self._cell * np.arange(n - CELLS + 1)
            for side, n in ((height, n_rows), (width, n_columns))
        ]
        return Descriptors(np.ascontiguousarray(values, np.float32), place(*middles), found.image_shape)


def place(y: Array, x: Array) -> Array:
    """Positions (len(y) len(x), 2) of a grid, row by row, as (x, y)."""
    return np.stack([np.tile(x, len(y)), np.repeat(y, len(x))], axis=1).astype(np.float32)


def place_cells(middles: Array, side: int, n_cells: int, cell: int) -> NDArray[np.intp]:
    """The cell, of n_cells in the middle of a side, that each middle lies in or next to."""
    cells = np.floor((middles + 0.5 - 0.5 * (side - n_cells * cell)) / cell)
    return np.clip(cells, 0, n_cells - 1).astype(np.intp)


def sample_patches(
    features: Any, items: NamedImages, n_samples: int, seed: np.random.SeedSequence, n_jobs: int | None
) -> Array:
    """About n_samples descriptors (n, m) float64, in equal shares from images drawn at random."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(items))[: min(MAX_IMAGES, n_samples)])
    share = -(-n_samples // len(chosen))
    parts = []
    for described in map_threads(lambda i: describe(features, items[i]), chosen.tolist(), n_jobs):
        parts.append(described.values[np.sort(rng.permutation(len(described))[:share])])
    return np.concatenate(parts).astype(np.float64)


def learn_atoms(
    X: Array, n_atoms: int, n_nonzero: int, n_iter: int, seed: np.random.SeedSequence, n_jobs: int | None
) -> Array:
    """A dictionary (at most n_atoms, m), rows of unit norm, by K-SVD of X (n, m) from some of its rows."""
    rng = np.random.default_rng(seed)
    rows = X[rng.permutation(len(X))]
    rows = rows[np.linalg.norm(rows, axis=1) > MIN_NORM][:n_atoms]
    if len(rows) == 0:  # nothing but flat patches
        rows = rng.normal(size=(1, X.shape[1]))
    return learn_ksvd(X, normalize(rows), n_nonzero, n_iter, n_jobs)[0]

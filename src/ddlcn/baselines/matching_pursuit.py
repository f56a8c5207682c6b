"""Multipath hierarchical matching pursuit, M-HMP (Bo, Ren and Fox 2013): patches coded once or twice, on several paths.

In: images (or vectors (n, m): each is then the only patch of its image) and labels. Out: the weights of a linear SVM.
Every code z of x is by batch orthogonal matching pursuit, every dictionary D by K-SVD on training images:

    min_{D, Z}  ||X - Z D||^2     subject to  at most `n_nonzero` entries per row of Z, atoms of unit norm

A path of one layer, (s,), codes the s x s patches of the picture, each without its mean. A path of two layers, (s, t):

1. s x s patches are coded; the largest z and the largest -z of every atom in each cell of t/4 x t/4 pixels are F;
2. the F of 4 x 4 cells, side by side, f / sqrt(||f||^2 + eps), are one patch of t x t pixels, and coded again.

The codes of a path's last layer are pooled by the largest z and -z of a spatial pyramid; all paths, side by side and of
equal norm, go to a linear SVM.

From the paper (we had its abstract and figure, and programs of others for HMP, after the authors'; not its text): the
paths, patches of 5 x 5 in the first layer and about 16 and 36 in the second, 75 atoms for grey and 150 for colour, 4
and 10 nonzeros, positive and negative parts, 4 x 4 cells, the normalisation, C = 10. Ours: K-SVD without the penalty on
similar atoms of its MI-KSVD; fewer atoms in the last layers and pictures of half the side, for time; 32 for 36; no
path of three layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ddlcn.baselines.descriptor_base import DescriptorBaseline, NamedImages, WholeVector
from ddlcn.baselines.ksvd_learning import learn_ksvd
from ddlcn.blocks import CodedBlock, Encoding, SingleBranch
from ddlcn.coding import CodeBlock
from ddlcn.coding.omp import iter_blocks, pursue
from ddlcn.descriptors import Descriptors
from ddlcn.descriptors.store import describe
from ddlcn.images import read_image
from ddlcn.images.colour import read_colour_values
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_per_layer

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


class MHMP(DescriptorBaseline):
    """Patches coded by matching pursuit in one or two layers on several paths, pooled, and a linear SVM.

    Parameters
    ----------
    paths : tuple of tuples of one or two int
        Sides of the patches of every layer, in pixels; that of a second layer is a multiple of 4.
    n_atoms : int or (int, int)
        Of a first layer that another follows, and of the last layer of every path.
    n_nonzero : int or (int, int)
        Nonzeros of a code, likewise.
    step : int or (int, int)
        Pixels between patches of the picture, where a second layer follows and where none does.
    max_side : int
        Larger pictures are reduced to this longest side.
    colour : bool
        Whether patches are of three colours.
    n_samples : int
        Patches that a dictionary is learned from, at most.
    max_iter : int
        Of K-SVD.
    pyramid : tuple of int
    C : float
        Regularisation of the linear SVM.
    n_jobs, random_state
        See `DescriptorBaseline`.

    Attributes
    ----------
    dictionaries_ : list of list of ndarray (atoms, m)
        Of every path, one per layer. Paths with the same first layer share its dictionary.
    """

    def __init__(
        self,
        paths: tuple[tuple[int, ...], ...] = ((16,), (5, 16), (5, 32)),
        *,
        n_atoms: int | tuple[int, int] = (75, 500),
        n_nonzero: int | tuple[int, int] = (4, 10),
        step: int | tuple[int, int] = (1, 4),
        max_side: int = 150,
        colour: bool = False,
        n_samples: int = 8000,
        max_iter: int = 8,
        pyramid: tuple[int, ...] = (1, 2, 4),
        C: float = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.paths = paths
        self.n_atoms = n_atoms  # type: ignore[assignment]
        self.n_nonzero = n_nonzero
        self.step = step
        self.max_side = max_side
        self.colour = colour
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.pyramid = pyramid
        self.C = C
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _make_features(self) -> RawPatches:
        return self._make_patches(self._check_paths()[0])

    def _fit_dictionary(self, items: NamedImages) -> None:
        n_atoms, n_samples = self._check_pair("n_atoms", self.n_atoms), check_count("n_samples", self.n_samples)
        n_nonzero, max_iter = self._check_pair("n_nonzero", self.n_nonzero), check_count("max_iter", self.max_iter)
        self.n_iter_ = max_iter
        self._paths = [(0,)] if isinstance(self._features, WholeVector) else self._check_paths()
        seeds = iter(self._spawn(1 + 2 * len(self._paths))[1:])

        def learn(features: Any, layer: int) -> Array:
            sample_seed, start_seed = next(seeds).spawn(2)
            sample = sample_patches(features, items, n_samples, sample_seed, self.n_jobs)
            return learn_atoms(sample, n_atoms[layer], n_nonzero[layer], max_iter, start_seed, self.n_jobs)

        shared: dict[int, Array] = {}
        self.dictionaries_: list[list[Array]] = []
        for path in self._paths:
            layers = []
            if len(path) == 2:
                if path[0] not in shared:
                    shared[path[0]] = learn(self._make_patches(path), 0)
                layers.append(shared[path[0]])
            layers.append(learn(self._make_descriptors(path, layers), 1))
            self.dictionaries_.append(layers)

    def _make_coder(self) -> OMPCoder:
        return self._make_last_coder(0)

    def _make_last_coder(self, path: int) -> OMPCoder:
        return OMPCoder(self.dictionaries_[path][-1], self._check_pair("n_nonzero", self.n_nonzero)[1])

    def _make_encoding(self) -> Encoding:
        branches = []
        for number, (path, layers) in enumerate(zip(self._paths, self.dictionaries_, strict=True)):
            coder = self._make_last_coder(number)
            block = CodedBlock(coder, np.ones(coder.n_atoms), np.ones(coder.n_atoms), self._levels)
            branches.append(SingleBranch(self._make_descriptors(path, layers), block, self._levels))
        return Encoding(branches, (1.0 / len(branches),) * len(branches))

    def _make_descriptors(self, path: tuple[int, ...], layers: list[Array]) -> Any:
        """What the last layer of a path sees; `layers` has the dictionary of the first, if there are two."""
        if isinstance(self._features, WholeVector):
            return self._features
        patches = self._make_patches(path)
        if len(path) == 1:
            return patches
        return PooledCodes(patches, layers[0], self._check_pair("n_nonzero", self.n_nonzero)[0], path[1] // CELLS)

    def _make_patches(self, path: tuple[int, ...]) -> RawPatches:
        step = self._check_pair("step", self.step)[0 if len(path) == 2 else 1]
        return RawPatches(path[0], step, check_count("max_side", self.max_side), max(path), bool(self.colour))

    def _check_paths(self) -> list[tuple[int, ...]]:
        paths = [tuple(check_count("paths", side) for side in path) for path in self.paths]
        if not paths or any(len(path) not in (1, 2) for path in paths):
            raise ValueError(f"paths must be one or more, each of one or two patch sizes; got {self.paths!r}")
        for path in paths:
            if len(path) == 2 and (path[1] % CELLS or path[0] > path[1]):
                raise ValueError(f"the second layer's patch must be a multiple of {CELLS} and no smaller; got {path}")
        return paths

    def _check_pair(self, name: str, value: Any) -> tuple[int, int]:
        first, second = (check_count(name, each) for each in check_per_layer(name, value, 2))
        return first, second


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

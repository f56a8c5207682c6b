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
from numpy.typing import NDArray

from ddlcn.baselines.descriptor_base import DescriptorBaseline, NamedImages, WholeVector
from ddlcn.baselines.matching_pursuit_layers import (
    CELLS,
    OMPCoder,
    PooledCodes,
    RawPatches,
    learn_atoms,
    sample_patches,
)
from ddlcn.blocks import CodedBlock, Encoding, SingleBranch
from ddlcn.images import NamedImage
from ddlcn.utils.validation import check_count, check_per_layer

Array = NDArray[Any]


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

    def _take(self, images: Any, fitting: bool) -> NamedImages:
        # Patches are not kept, as other descriptors are: they are many times as large as what they are made from.
        return [NamedImage(item.name, item.image) for item in super()._take(images, fitting)]

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

"""The forward pass: images in, pooled features out, in one stream (DESIGN 2, and 3 "Flow").

A batch of images is described, coded and pooled by one thread before it takes the next, so neither the descriptors nor
the codes of a data set are ever held: memory does not grow with the number of images, only the output does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn._sparse import make_csr
from ddlcn._threads import map_threads
from ddlcn.coding import CodeBlock, LocalityCoder, encode_layers, path_weights, reconstruct
from ddlcn.coding.locality import BLOCK
from ddlcn.coding.residual import ResidualCoder
from ddlcn.coding.tangents import TangentModel, Tangents
from ddlcn.features import Descriptors, describe
from ddlcn.pooling import assign_cells, attribute, count_cells, pool
from ddlcn.stream import FeatureStream, NamedImage

Array = NDArray[Any]
# Images by which the number of nonzeros is estimated.
SAMPLED_IMAGES = 16
# Bound on the coder's certificate; the active set reaches far below, this is what would be reported as a failure.
TOL = 1e-6
# Keeps a division by zero from being one.
TINY = 1e-30


class ForwardPass(FeatureStream):
    """Describe, code, pool: any coder, any weights.

    Parameters
    ----------
    features : object with transform(images) -> list of Descriptors
    coder : object with encode_block(X) -> CodeBlock, and n_atoms, n_dimensions, dtype
    plus, minus : ndarrays (n_atoms,)
        Weights of the largest code and of the largest negative code of an atom; see `ddlcn.pooling`. `minus` may be
        None: then only the largest codes are features.
    pyramid : tuple of int
    pool_power : float
    engine : str
    """

    def __init__(
        self,
        features: Any,
        coder: Any,
        plus: Array,
        minus: Array | None,
        pyramid: tuple[int, ...],
        pool_power: float,
        engine: str,
    ) -> None:
        self.features = features
        self._coder = coder
        self._plus, self._minus = plus, minus
        self._pyramid = pyramid
        self._pool_power = pool_power
        self._engine = engine
        self.n_columns = (1 if minus is None else 2) * count_cells(pyramid) * coder.n_atoms

    def features_of_batch(self, batch: Sequence[NamedImage]) -> Any:
        """As of any stream of features."""
        described = [describe(self.features, name, image) for name, image in batch]
        X = np.concatenate([self._values(d) for d in described])
        cells = np.concatenate([assign_cells(d.xy, d.image_shape, self._pyramid) for d in described])
        return self._join(described, self._pool(X, cells, np.cumsum([0] + [len(d) for d in described])))

    def _join(self, described: Sequence[Descriptors], pooled: Any) -> Any:
        """The features of images from what was pooled and what their descriptors say otherwise: here, nothing."""
        return pooled

    def _pool(self, X: Array, cells: NDArray[np.int32], starts: NDArray[np.int64]) -> Any:
        """Pooled features (images, columns) of the images whose descriptors X (n, m) begin at `starts`."""
        weights = (self._plus, self._minus)
        return pool(self._encode(X), cells, starts, self._pyramid, *weights, self._pool_power, self._engine)

    def attribute(self, name: str, image: Any) -> tuple[Descriptors, Any]:
        """The descriptors of one image, and its feature split among them: csr_array (patches, n_columns).

        The sum of the rows is the feature.
        """
        described = describe(self.features, name, image)
        cells = assign_cells(described.xy, described.image_shape, self._pyramid)
        return described, self._attribute(self._values(described), cells)

    def _attribute(self, X: Array, cells: NDArray[np.int32]) -> Any:
        weights = (self._plus, self._minus)
        return attribute(self._encode(X), cells, self._pyramid, *weights, self._pool_power, self._engine)

    def _values(self, descriptors: Descriptors) -> Array:
        found, learned = descriptors.values.shape[1], self._coder.n_dimensions
        if found != learned:
            raise ValueError(
                f"features gives descriptors of width {found} but the dictionary was learned on width {learned}: "
                f"use the features that the model was fitted with"
            )
        return np.ascontiguousarray(descriptors.values, self._coder.dtype)

    def _encode(self, X: Array) -> CodeBlock:
        """Codes of many descriptors, block by block, in this thread."""
        blocks = [self._coder.encode_block(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)]
        return CodeBlock(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


class ImageFeatures:
    """The features of a list of images, computed when asked for, so that they need not all be held at once.

    Parameters
    ----------
    forward : ForwardPass, or any object with its `transform` and `n_columns`
    named : sequence of (name, image)
    n_jobs : int, optional
        Threads.
    show : bool
        Whether to show progress.
    """

    def __init__(self, forward: Any, named: Sequence[NamedImage], n_jobs: int | None, show: bool) -> None:
        self._forward, self._named = forward, named
        self._n_jobs, self._show = n_jobs, show
        self.n_images, self.n_columns = len(named), forward.n_columns

    def take(self, rows: slice) -> Any:
        """The features of some of the images: csr_array (rows, n_columns)."""
        return self._forward.transform(self._named[rows], self._n_jobs, self._show)

    def estimate_nonzeros(self) -> int:
        """About how many nonzeros all images have together, by a sample of them."""
        sample = self._named[:: max(1, self.n_images // SAMPLED_IMAGES)][:SAMPLED_IMAGES]
        return int(self._forward.transform(sample, self._n_jobs).nnz / len(sample) * self.n_images)


class Network(ForwardPass):
    """Dictionaries of all layers, prepared for the forward pass.

    Parameters
    ----------
    dictionaries : sequence of arrays (D_l, m)
        One per layer.
    depth : "augment" or "residual"
        How deeper layers enter the feature: `coding.depth` or `coding.residual`.
    layer_weights : sequence of float, or None
        Of residual depth: factors on each layer's pooled codes; None means one.
    features : object with transform(images) -> list of Descriptors
    betas, n_neighbors : sequences
        One value per layer.
    pyramid : tuple of int
    pool_power : float
    engine : str
    tangents : TangentModel, optional
        Then the feature is that of the layers and that of `coding.tangents`, side by side, with equal weight.
    whole_share : float
        Descriptors that also describe the image as a whole (`Descriptors.whole`) add the square roots of that, scaled
        to length one, with this share of the feature.
    """

    def __init__(
        self,
        dictionaries: Sequence[Array],
        depth: str,
        layer_weights: Sequence[float] | None,
        features: Any,
        betas: Sequence[float],
        n_neighbors: Sequence[int | None],
        pyramid: tuple[int, ...],
        pool_power: float,
        engine: str,
        tangents: TangentModel | None = None,
        whole_share: float = 0.5,
    ) -> None:
        self._dictionaries = dictionaries
        self._depth = depth
        coder: Any
        plus: Array
        minus: Array | None
        if depth == "residual":
            coder = ResidualCoder(dictionaries, betas, n_neighbors, TOL, engine)
            plus, minus = np.ones(coder.n_atoms), None
            for columns, weight in zip(coder.layer_columns, layer_weights or (), strict=False):
                plus[columns] = weight
        else:
            coder = LocalityCoder(dictionaries[0], betas[0], n_neighbors[0], TOL, engine)
            self._deep_codes = encode_layers(dictionaries, betas, n_neighbors, TOL, n_jobs=1)
            P, N = path_weights(self._deep_codes, len(dictionaries[0]), pool_power)
            plus, minus = np.sqrt(P), np.sqrt(N)
        super().__init__(features, coder, plus, minus, pyramid, pool_power, engine)
        self._tangents = None
        if tangents is not None:
            self._tangents = Tangents(tangents, betas[0], n_neighbors[0], TOL, engine)
            self.n_columns += count_cells(pyramid) * self._tangents.n_columns_per_cell
        self._whole_share = whole_share
        self._n_responses = int(getattr(features, "n_responses_", 0))
        self.n_columns += self._n_responses

    def _pool(self, X: Array, cells: NDArray[np.int32], starts: NDArray[np.int64]) -> Any:
        of_layers = super()._pool(X, cells, starts)
        if self._tangents is None:
            return of_layers
        of_tangents = self._tangents.pool(X, cells, starts, count_cells(self._pyramid))
        return _side_by_side(of_layers, of_tangents)

    def _join(self, described: Sequence[Descriptors], pooled: Any) -> Any:
        if self._n_responses == 0:
            return pooled
        roots = np.sqrt(np.stack([np.asarray(d.whole) for d in described]))  # (images, s)
        unit = roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), TINY)
        return _side_by_side(pooled, unit, self._whole_share)

    def attribute(self, name: str, image: Any) -> tuple[Descriptors, Any]:
        """As of any forward pass; what describes the whole image is split in proportion to the patches' responses."""
        described, of_patches = super().attribute(name, image)
        if self._n_responses == 0:
            return described, of_patches
        responses = self.features.respond(image, name=name).astype(np.float64)  # (patches, s)
        totals = responses.sum(axis=0)
        roots = np.sqrt(totals)
        of_whole = responses * (roots / np.maximum(totals, TINY) / max(float(np.linalg.norm(roots)), TINY))
        return described, _side_by_side(of_patches, of_whole.astype(np.float32), self._whole_share)

    def _attribute(self, X: Array, cells: NDArray[np.int32]) -> Any:
        of_layers = super()._attribute(X, cells)
        if self._tangents is None:
            return of_layers
        return _side_by_side(of_layers, self._tangents.attribute(X, cells, count_cells(self._pyramid)))

    def list_atoms(self) -> NDArray[np.intp]:
        """The atom behind every column of the feature (n_columns,): of layer 1 or, numbered on, of the tangents.

        -1 where none is: a network's responses to the whole image.
        """
        n_layer1 = len(self._dictionaries[0])
        of_code = np.arange(self._coder.n_atoms)
        if self._depth == "residual":
            for columns, atoms in zip(self._coder.layer_columns, self._dictionaries, strict=True):
                n_each = 1 if columns.start == 0 else len(atoms)
                of_code[columns] = np.arange(columns.stop - columns.start) // n_each
        n_cells = count_cells(self._pyramid)
        atoms = np.tile(of_code, (1 if self._minus is None else 2) * n_cells)
        if self._tangents is not None:
            n_atoms, n_directions = self._tangents.shape
            of_tangents = np.tile(n_layer1 + np.repeat(np.arange(n_atoms), n_directions), n_cells)
            atoms = np.concatenate([atoms, of_tangents])
        return np.concatenate([atoms, np.full(self._n_responses, -1)])

    @property
    def n_listed_atoms(self) -> int:
        """How many atoms `list_atoms` numbers."""
        return len(self._dictionaries[0]) + (0 if self._tangents is None else self._tangents.shape[0])

    def reconstruct(self, named: Iterable[NamedImage], n_jobs: int | None) -> Iterator[list[Array]]:
        """Yield, per image, each layer's approximation (patches, m) of its descriptors."""

        def approximate(named_image: NamedImage) -> list[Array]:
            values = self._values(describe(self.features, *named_image))
            if self._depth == "residual":
                return list(self._coder.reconstruct(values))
            codes = self._encode(values)
            used = np.arange(codes.indices.shape[1]) < codes.counts[:, None]
            starts = np.concatenate([[0], np.cumsum(codes.counts)])
            shape = (len(values), len(self._dictionaries[0]))
            Z = make_csr(codes.values[used], codes.indices[used], starts, shape)
            return reconstruct(Z, self._dictionaries, self._deep_codes)

        return map_threads(approximate, named, n_jobs)


def _side_by_side(a: Any, b: Any, share: float = 0.5) -> Any:
    """Two features (n, columns) of length one as one of length one, b with that share of it: csr_array."""
    scaled = [a * np.float32(np.sqrt(1 - share)), sparse.csr_array(b) * np.float32(np.sqrt(share))]
    return sparse.csr_array(sparse.hstack(scaled, format="csr"))

"""Convolutional clustering (Dundar, Jin and Culurciello 2015): two layers of filters by convolutional k-means.

In: pictures (n, H, W) and labels. Out: decisions.

1. Filters d_1 .. d_K by convolutional k-means (`convolutional_filters`) on patches of normalised contrast, whitened.
   Their rectified answers, max(0, d_k . x), are pooled by the largest of 2 x 2: maps f_1 .. f_K.
2. Connections A (maps of layer 2, K), learned with the labels. Beside them, and dropped later, a softmax classifier V
   of the largest answers in each cell of a grid:

       min_{A, V}  - mean_i log softmax(V max(0, A f_i))_{y_i} + decay / 2 ||V||^2

   from an A that takes every map as it is, in random order. max(0, A f) is cut into groups of four maps.
3. Filters of layer 2 by convolutional k-means in every group by itself: a filter sees four maps and not all.

The largest answers of both layers in the cells of a grid, each layer scaled to unit norm, go to a linear SVM.

From the paper (we had its abstract, a detailed summary and a program of others, not its text): convolutional k-means on
windows of twice the side, connections learned with the labels in groups of four maps, filters learned group by group,
pooling by the largest, outputs of both layers side by side, whitening in layer 1 only. Ours: all sizes on digits, the
softmax objective of the connections and its solver, contrast normalisation in layer 2, the threshold of the rectifier,
and a linear SVM where the paper has a network of one hidden layer with dropout. The paper learns its filters from
unlabelled pictures too; here they come from the training pictures alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.baselines.base import Labels, PictureBaseline
from ddlcn.baselines.convolutional_filters import (
    Floats,
    Scaling,
    cut_patches,
    draw_windows,
    learn_connections,
    learn_filters,
    make_batches,
    pool_cells,
    pool_pairs,
    rectify,
    to_unit,
)
from ddlcn.svm import KeptFeatures, SVMConfig, train
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count, check_number, check_per_layer

Array = NDArray[Any]


class Bank(NamedTuple):
    """Filters (k, size^2 c) of one layer or group, and how patches are scaled before."""

    scaling: Scaling
    filters: Floats
    size: int
    threshold: float | None

    def answer(self, maps: Floats) -> Floats:
        """Rectified answers to maps (n, H, W, c): (n, H', W', k)."""
        return rectify(self.scaling.apply(cut_patches(maps, self.size)) @ self.filters.T, self.threshold)


class ConvolutionalClustering(PictureBaseline):
    """Filters by convolutional k-means in two layers, connected with the help of labels, and a linear SVM.

    Parameters
    ----------
    n_filters : int or (int, int)
        Of layer 1, and of every group of layer 2. At most as many as there are windows that are not flat.
    filter_size : int or (int, int)
        Sides of a filter in pixels. Layer 2 sees half the resolution.
    group_size : int
        Maps that a filter of layer 2 sees; at most the filters of layer 1.
    window_scale : int
        Side of a window over that of a filter; 1 makes it plain k-means.
    connections : "learned" or "random"
        How the groups of layer 2 are made.
    threshold : float or None
        Answers r of a patch to the filters of a layer count by max(0, r - mean - threshold * deviation), over the
        filters; None means max(0, r), the paper's.
    n_cells : int or (int, int)
        Cells of the grid, along a side, that the answers of layers 1 and 2 are pooled in.
    n_windows : int or (int, int)
        Windows that filters are learned from, in layer 1 and in every group of layer 2.
    max_iter : int
        Rounds of k-means.
    C : float
        Regularisation of the linear SVM.
    image_shape : (H, W), optional
        Size that pictures are resized to; None means the shape of the first training picture.
    n_jobs : int, optional
        Threads; None means every core.
    random_state : int, Generator or None

    Attributes
    ----------
    filters_ : ndarray (n_filters, filter_size, filter_size)
        Of layer 1, in the whitened space.
    connections_ : ndarray (maps of layer 2, n_filters)
    objectives_ : list of list of float
        Of k-means before every round, in layer 1 and in every group.
    coef_, intercept_ : ndarrays (n_classes, columns) and (n_classes,); one row for two classes
    """

    # Sizes, the threshold and C are our settings, chosen on 2,000 digits held out of the training digits.

    def __init__(
        self,
        n_filters: int | tuple[int, int] = (32, 64),
        filter_size: int | tuple[int, int] = (7, 5),
        *,
        group_size: int = 4,
        window_scale: int = 2,
        connections: str = "learned",
        threshold: float | None = 0.5,
        n_cells: int | tuple[int, int] = (4, 3),
        n_windows: int | tuple[int, int] = (8000, 3000),
        max_iter: int = 8,
        C: float = 10.0,
        image_shape: tuple[int, int] | None = (32, 32),
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_filters = n_filters
        self.filter_size = filter_size
        self.group_size = group_size
        self.window_scale = window_scale
        self.connections = connections
        self.threshold = threshold
        self.n_cells = n_cells
        self.n_windows = n_windows
        self.max_iter = max_iter
        self.C = C
        self.image_shape = image_shape
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, pictures: Floats, y: Labels) -> None:
        check_choice("connections", self.connections, ("learned", "random"))
        C, sizes = check_number("C", self.C, above=True), self._check_sizes(pictures.shape[1:])
        group_size = check_count("group_size", self.group_size)
        self._threshold = None if self.threshold is None else check_number("threshold", self.threshold)
        self._cells = self._check_pair("n_cells", self.n_cells)
        first_seed, connection_seed, group_seed = self._spawn(4)[1:]
        self.objectives_: list[list[float]] = []
        self._first = self._learn_bank(pictures[..., None], 0, sizes[0], np.random.default_rng(first_seed))
        n_maps = len(self._first.filters)
        self.filters_ = self._first.filters.reshape(n_maps, sizes[0], sizes[0])
        outer, maps = self._run_first(pictures)

        rng = np.random.default_rng(connection_seed)
        n_groups = -(-n_maps // group_size)
        order = np.resize(rng.permutation(n_maps), n_groups * min(group_size, n_maps))
        self.connections_ = np.eye(n_maps, dtype=np.float32)[order]
        if self.connections == "learned":
            self.connections_ = learn_connections(outer, y, self.connections_, rng)
        self._groups = np.array_split(np.arange(len(order)), n_groups)
        seeds = group_seed.spawn(n_groups)
        self._second = [
            self._learn_bank(self._connect(maps, group), 1, sizes[1], np.random.default_rng(seed))
            for group, seed in zip(self._groups, seeds, strict=True)
        ]
        features = self._join(outer, maps)
        config = SVMConfig(len(self.classes_), C, "liblinear", np.ones(len(self.classes_)))
        self._svm = train(KeptFeatures(features, y), y, config, self.n_jobs).svm
        self.coef_, self.intercept_ = self._svm.coef, self._svm.intercept

    def _decide(self, pictures: Floats) -> Array:
        scores: Array = self._svm.decide(self._join(*self._run_first(pictures)))
        return scores

    def _learn_bank(self, maps: Floats, layer: int, size: int, rng: np.random.Generator) -> Bank:
        """Filters of maps (n, H, W, c)."""
        n_windows = self._check_pair("n_windows", self.n_windows)[layer]
        n_filters = self._check_pair("n_filters", self.n_filters)[layer]
        side = min(check_count("window_scale", self.window_scale) * size, *maps.shape[1:3])
        patches = cut_patches(draw_windows(maps, side, n_windows, rng), size)
        patches = patches.reshape(n_windows, -1, patches.shape[-1])
        # Layer 1 only, as in the paper: whitening of four maps would have to be learned anew for other pictures.
        scaling = Scaling.learn(patches[:, rng.integers(patches.shape[1])], whiten=layer == 0)
        filters, objective = learn_filters(
            scaling.apply(patches), n_filters, check_count("max_iter", self.max_iter), rng
        )
        self.objectives_.append(objective)
        return Bank(scaling, filters, size, self._threshold)

    def _run_first(self, pictures: Floats) -> tuple[Floats, Floats]:
        """Answers of layer 1, pooled in cells (n, rows, columns, k) and in pairs (n, H', W', k)."""

        def run(rows: slice) -> tuple[Floats, Floats]:
            answers = self._first.answer(pictures[rows][..., None])
            return pool_cells(answers, self._cells[0]), pool_pairs(answers)

        outer, maps = zip(*map_threads(run, make_batches(len(pictures)), self.n_jobs), strict=True)
        return np.concatenate(outer), np.concatenate(maps)

    def _connect(self, maps: Floats, group: NDArray[np.intp]) -> Floats:
        """The maps of a group of layer 2: (n, H, W, group)."""
        return np.asarray(np.maximum(maps @ self.connections_[group].T, 0.0))

    def _join(self, outer: Floats, maps: Floats) -> Any:
        """Features csr_array (n, columns) from what `_run_first` returns."""

        def run(rows: slice) -> Floats:
            inner = [
                pool_cells(bank.answer(self._connect(maps[rows], group)), self._cells[1]).reshape(
                    rows.stop - rows.start, -1
                )
                for group, bank in zip(self._groups, self._second, strict=True)
            ]
            return np.hstack([to_unit(outer[rows].reshape(rows.stop - rows.start, -1)), to_unit(np.hstack(inner))])

        return sparse.vstack(
            [sparse.csr_array(block) for block in map_threads(run, make_batches(len(maps)), self.n_jobs)], format="csr"
        )

    def _check_pair(self, name: str, value: Any) -> tuple[int, int]:
        first, second = (check_count(name, each) for each in check_per_layer(name, value, 2))
        return first, second

    def _check_sizes(self, shape: tuple[int, ...]) -> tuple[int, int]:
        first, second = self._check_pair("filter_size", self.filter_size)
        least = first - 1 + 2 * second
        if min(shape) < least:
            raise ValueError(
                f"filters of {first} and, at half the resolution, {second} pixels need pictures of {least} pixels a "
                f"side; got {shape[0]} x {shape[1]}: choose a smaller filter_size, or an image_shape"
            )
        return first, second

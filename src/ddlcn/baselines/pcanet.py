"""PCANet (Chan, Jia, Gao, Lu, Zeng and Ma 2015): filters by principal components, binary codes, histograms of blocks.

In: pictures (n, H, W) and labels. Out: decisions. A stage's filters W_1 .. W_L, of k x k pixels, are the leading
eigenvectors of the covariance of all k x k patches, each without its mean:

    max_W  tr(W X^T X W^T)   subject to   W W^T = 1                rows of X (patches, k^2), rows of W (L, k^2)

Stage 2 learns from the responses I * W_l of stage 1, all together. The responses of the last stage to one picture of
the stage before are hashed to one picture of whole numbers, T = sum_l 2^(l-1) [I * W_l > 0]. Histograms of T in every
block, one after another, are the feature: sparse small counts, classified by a linear SVM or by the nearest neighbour
in the chi-square distance sum_i (a_i - b_i)^2 / (a_i + b_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.baselines.base import Labels, PictureBaseline
from ddlcn.baselines.histogram_kernels import measure_chi2
from ddlcn.baselines.pcanet_filters import Grid, count_codes, find_starts, learn_filters, make_batches
from ddlcn.svm import SVMConfig, train
from ddlcn.utils.sparse_rows import stack_rows
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count, check_number, check_per_layer

Array = NDArray[Any]


class PCANet(PictureBaseline):
    """Two stages of PCA filters, binary hashing and block histograms, and a simple classifier.

    Parameters
    ----------
    n_stages : 1 or 2
        PCANet-1 or PCANet-2.
    n_filters : int, or tuple of int, one per stage
        The published 8. At most filter_size^2 - 1 are used: patches without their mean have no more dimensions. The
        histograms have 2 to the number of filters of the last stage bins.
    filter_size : int, odd
        The published 5 of faces; 7 for MNIST and objects.
    block_size : int or (int, int)
        Height and width of a block, at most those of the picture. 8 on Extended Yale B, 7 on MNIST.
    overlap : float in [0, 1)
        Fraction of a block that the next one overlaps. 0 on faces, 0.5 on MNIST.
    classifier : "svm" or "chi2"
        A linear SVM, as published for all but faces; or the nearest neighbour in the chi-square distance, as
        published for faces.
    C : float
        Regularisation of the SVM; liblinear's default of 1, as published.
    image_shape : (H, W), optional
        Size that pictures are resized to; None means the shape of the first training picture.
    n_jobs : int, optional
        Threads; None means every core.
    random_state
        Not used.

    Attributes
    ----------
    filters_ : list of ndarray (n_filters, filter_size, filter_size)
        One per stage. The largest entry of each is positive.
    """

    def __init__(
        self,
        n_stages: int = 2,
        *,
        n_filters: int | tuple[int, ...] = 8,
        filter_size: int = 5,
        block_size: int | tuple[int, int] = 8,
        overlap: float = 0.0,
        classifier: str = "svm",
        C: float = 1.0,
        image_shape: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_stages = n_stages
        self.n_filters = n_filters
        self.filter_size = filter_size
        self.block_size = block_size
        self.overlap = overlap
        self.classifier = classifier
        self.C = C
        self.image_shape = image_shape
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, pictures: Array, y: Labels) -> None:
        classifier = check_choice("classifier", self.classifier, ("svm", "chi2"))
        C = check_number("C", self.C, above=True)
        n_filters, size = self._check_filters(pictures.shape[1:])
        self._grid = self._place_blocks(pictures.shape[1:])
        self.filters_ = learn_filters(pictures, n_filters, size, self.n_jobs)
        source = _Histograms(pictures, self.filters_, self._grid, self.n_jobs)
        if classifier == "svm":
            config = SVMConfig(len(self.classes_), C, "liblinear", np.ones(len(self.classes_)))
            self._classifier: Any = train(source, y, config, self.n_jobs).svm
        else:
            self._classifier = _Neighbours(source, y)

    def _decide(self, pictures: Array) -> Array:
        source = _Histograms(pictures, self.filters_, self._grid, 1)

        def decide(rows: slice) -> Array:
            scores: Array = self._classifier.decide(source.take(rows))
            return scores

        return np.concatenate(list(map_threads(decide, make_batches(len(pictures)), self.n_jobs)))

    def _check_filters(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        n_stages, size = check_count("n_stages", self.n_stages), check_count("filter_size", self.filter_size, 3)
        if n_stages > 2:
            raise ValueError(f"n_stages must be 1 or 2; got {n_stages}")
        if size % 2 == 0 or size > min(shape):
            raise ValueError(
                f"filter_size must be odd and at most the smaller side of a picture, {min(shape)}; got {size}"
            )
        asked = [check_count("n_filters", n) for n in check_per_layer("n_filters", self.n_filters, n_stages)]
        if asked[-1] > 12:  # 4,096 bins
            raise ValueError(f"n_filters must be at most 12 in the last stage (2^n bins a block); got {asked[-1]}")
        return tuple(min(n, size * size - 1) for n in asked), size

    def _place_blocks(self, shape: tuple[int, ...]) -> Grid:
        sides = self.block_size if isinstance(self.block_size, tuple | list) else (self.block_size,) * 2
        if len(sides) != 2:
            raise ValueError(f"block_size must be a whole number or (height, width); got {self.block_size!r}")
        height, width = (min(check_count("block_size", side), most) for side, most in zip(sides, shape, strict=True))
        overlap = check_number("overlap", self.overlap)
        if overlap >= 1.0:
            raise ValueError(f"overlap must be below 1; got {overlap!r}")
        return Grid(find_starts(shape[0], height, overlap), find_starts(shape[1], width, overlap), height, width)


@dataclass(frozen=True)
class _Histograms:
    """Features of pictures (n, H, W), computed on demand (a `FeatureRows` of `ddlcn.svm`)."""

    pictures: Array
    filters: list[Array]
    grid: Grid
    n_jobs: int | None

    @property
    def n_images(self) -> int:
        return len(self.pictures)

    @property
    def n_columns(self) -> int:
        n_maps = int(np.prod([len(bank) for bank in self.filters[:-1]]))
        return n_maps * self.grid.n_blocks * int(2 ** len(self.filters[-1]))

    def take(self, rows: slice) -> Any:
        """csr_array (rows, n_columns)."""
        return self._stack(self.pictures[rows], None)

    def take_all(self, max_bytes: int | None) -> Any | None:
        """All rows, or None if they need more memory than that."""
        return self._stack(self.pictures, max_bytes)

    def _stack(self, pictures: Array, max_bytes: int | None) -> Any | None:
        batches = (pictures[part] for part in make_batches(len(pictures)))
        blocks = map_threads(lambda batch: count_codes(batch, self.filters, self.grid), batches, self.n_jobs)
        return stack_rows(blocks, (len(pictures), self.n_columns), max_bytes)


class _Neighbours:
    """The nearest training image of every class in the chi-square distance.

    Parameters
    ----------
    source : _Histograms of n pictures
    y : ndarray (n,), class indices
    """

    def __init__(self, source: _Histograms, y: Labels) -> None:
        self._y, self._n_bins = y, 2 ** len(source.filters[-1])
        # By bin, all training images contiguous, one byte each (two if blocks have more than 255 pixels). A fifth are
        # nonzero on faces, so sparse lists would be as large, and took twice the time.
        self._bins = np.zeros((source.n_columns, source.n_images), np.min_scalar_type(source.grid.n_pixels))
        batches = make_batches(source.n_images)
        for rows, counts in zip(batches, map_threads(source.take, batches, source.n_jobs), strict=True):
            self._bins[:, rows] = counts.toarray().T

    def decide(self, features: Any) -> Array:
        """Minus the distance to the nearest of each class: (n, n_classes)."""
        distances = measure_chi2(features, self._bins, self._n_bins)
        return -np.stack([distances[:, self._y == c].min(axis=1) for c in range(self._y.max() + 1)], axis=1)

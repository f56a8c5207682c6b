"""Kernels between images for methods that mix several: a source describes an image by one row, a measure compares rows.

source        row of an image                                                           measure
words         counts of visual words of dense SIFT, shared by the nearest, in a pyramid chi2
patterns      counts of grey-level local binary patterns in a pyramid                   chi2
gradients     SIFT of a thumbnail, patch after patch                                    gaussian
colours       a small thumbnail in colour                                               gaussian
pixels        grey values of a thumbnail without their mean, unit norm                  linear

chi2          exp(-d / mean d),  d = sum_j (a_j - b_j)^2 / (a_j + b_j),   the mean over training images
gaussian      exp(-d / mean d),  d = ||a - b||^2
linear        a . b / mean ||a||^2
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone

from ddlcn.baselines.codebooks import learn_centres
from ddlcn.baselines.histogram_kernels import N_BINS, measure_chi2
from ddlcn.baselines.histograms import Histograms, SoftAssignment, weigh_levels
from ddlcn.baselines.inputs import Pixels, read_stack
from ddlcn.blocks import Encoding, SingleBranch
from ddlcn.descriptors import DenseSIFT, keep_descriptors, resolve_descriptors, sample_descriptors
from ddlcn.descriptors.dense_sift import describe_grey
from ddlcn.images import name_images, read_image
from ddlcn.images.colour import read_colours
from ddlcn.pooling import assign_cells, check_pyramid, count_cells
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count, check_number, seed_sequence

Array = NDArray[Any]
MEASURES = ("chi2", "gaussian", "linear")


class _Source(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of images that learns nothing."""

    def fit(self, images: Any, y: Any = None) -> Any:
        return self


class Words(_Source):
    """Counts of visual words in a spatial pyramid; rows sum to one.

    Parameters
    ----------
    n_atoms : int
        At most as many as there are descriptors.
    n_neighbors, sigma : int and float
        A descriptor is shared by so many nearest atoms, as in `KC`; 1 is a bag of words. LP-beta on folds of training
        images of 20 classes of Caltech 101: 10 neighbours 83.0 % (the best of 21 trials), 1 (the paper) 80.6. The gain
        did not carry over to test images of all 101 classes: 64.4 against 65.1 (docs/baselines.md).
    features : "sift" or an object such as `DenseSIFT(step=4)`
    pyramid : tuple of int
    n_jobs, random_state
    """

    def __init__(
        self,
        n_atoms: int = 300,
        n_neighbors: int = 10,
        sigma: float = 0.2,
        *,
        features: Any = "sift",
        pyramid: tuple[int, ...] = (1, 2, 4),
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.features = features
        self.pyramid = pyramid
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_transform(self, images: Any, y: Any = None) -> Any:
        """`fit` and `transform`; every image is described once."""
        items = keep_descriptors(images)
        return self.fit(items).transform(items)

    def fit(self, images: Any, y: Any = None) -> Words:
        """Learn the codebook; `y` is not looked at."""
        sample_seed, codebook_seed = seed_sequence(self.random_state).spawn(2)
        self._features, self._levels = resolve_descriptors(self.features), check_pyramid(self.pyramid)
        sample = sample_descriptors(self._features, list(name_images(images)), sample_seed, self.n_jobs)
        self.dictionary_ = learn_centres(sample, check_count("n_atoms", self.n_atoms), codebook_seed)
        return self

    def transform(self, images: Any) -> Any:
        """csr_array (n, cells * atoms)."""
        sigma, n_neighbors = check_number("sigma", self.sigma, above=True), check_count("n_neighbors", self.n_neighbors)
        block = Histograms(SoftAssignment(self.dictionary_, sigma, n_neighbors), self._levels, root=False)
        encoding = Encoding([SingleBranch(self._features, block, self._levels)], (1.0,))
        return encoding.transform(list(name_images(images)), self.n_jobs)


def _name_patterns() -> Array:
    """The bin (256,) of every pattern of 8 neighbours: one for each of the 58 that change at most twice around the
    circle, and one for all others (Ojala et al. 2002)."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


class BinaryPatterns(_Source):
    """Counts of grey-level local binary patterns (59 bins) in a spatial pyramid; rows sum to one.

    A pixel's pattern says which of its 8 neighbours are at least as bright as it is.

    Parameters
    ----------
    max_side : int
        Larger pictures are reduced to it.
    pyramid : tuple of int
    n_jobs : int, optional
    """

    def __init__(self, max_side: int = 200, pyramid: tuple[int, ...] = (1, 2, 4), n_jobs: int | None = None) -> None:
        self.max_side = max_side
        self.pyramid = pyramid
        self.n_jobs = n_jobs

    def transform(self, images: Any) -> Any:
        """csr_array (n, 59 cells)."""
        levels, bins = check_pyramid(self.pyramid), _name_patterns()
        n_bins, n_cells, weights = int(bins.max()) + 1, count_cells(levels), weigh_levels(levels)

        def count(item: tuple[str, Any]) -> Array:
            grey = read_image(item[1], max_side=self.max_side, patch_size=3, name=item[0])
            patterns = bins[compare_neighbours(grey)]  # (H - 2, W - 2)
            y, x = np.mgrid[: patterns.shape[0], : patterns.shape[1]]
            cells = assign_cells(np.stack([x.ravel(), y.ravel()], axis=1), patterns.shape, levels)
            where = cells.astype(np.intp) * n_bins + patterns.reshape(-1, 1)
            shares = np.broadcast_to(weights / patterns.size, where.shape)
            return np.bincount(where.ravel(), shares.ravel(), n_cells * n_bins).astype(np.float32)

        return sparse.csr_array(np.stack(list(map_threads(count, name_images(images), self.n_jobs))))


def compare_neighbours(grey: Array) -> Array:
    """Patterns (H - 2, W - 2), 0 to 255, of a grey picture (H, W); the first bit is the neighbour at the top left."""
    height, width = grey.shape
    centre = grey[1:-1, 1:-1]
    patterns = np.zeros(centre.shape, np.uint8)
    for bit, (y, x) in enumerate(((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))):
        patterns |= (grey[y : height - 2 + y, x : width - 2 + x] >= centre).astype(np.uint8) << bit
    return patterns


class Gradients(_Source):
    """Dense SIFT of a thumbnail, one patch after the other: where which edges are (rows n, patches * 128)."""

    def __init__(self, side: int = 64, patch_size: int = 16, step: int = 8, n_jobs: int | None = None) -> None:
        self.side = side
        self.patch_size = patch_size
        self.step = step
        self.n_jobs = n_jobs

    def transform(self, images: Any) -> Array:
        stack = read_stack(images, (self.side, self.side), self.n_jobs)
        described = map_threads(lambda grey: describe_grey(grey, (self.patch_size,), self.step), stack, self.n_jobs)
        return np.stack([each.values.ravel() for each in described])


class Colours(_Source):
    """A thumbnail in colour, values in [0, 1] (rows n, 3 side^2)."""

    def __init__(self, side: int = 8, n_jobs: int | None = None) -> None:
        self.side = side
        self.n_jobs = n_jobs

    def transform(self, images: Any) -> Array:
        def shrink(item: tuple[str, Any]) -> Array:
            return read_colours(item[1], ((self.side, self.side),), name=item[0])[0][0].ravel() / 255.0

        return np.stack(list(map_threads(shrink, name_images(images), self.n_jobs)))


class Rows(_Source):
    """Vectors as they are."""

    def transform(self, X: Array) -> Array:
        return X


# Name of a kernel: its source and measure.
KERNELS: dict[str, tuple[Any, str]] = {
    "words 12": (Words(features=DenseSIFT(12, 4)), "chi2"),
    "words 16": (Words(features=DenseSIFT(16, 4)), "chi2"),
    "words 24": (Words(features=DenseSIFT(24, 6)), "chi2"),
    "words 32": (Words(features=DenseSIFT(32, 6)), "chi2"),
    "patterns": (BinaryPatterns(), "chi2"),
    "gradients": (Gradients(), "gaussian"),
    "colours": (Colours(), "gaussian"),
    "pixels": (Pixels(), "linear"),
}


class ImageKernel:
    """A kernel between images and the training images.

    Parameters
    ----------
    source : transformer of images
        For "chi2" its rows are histograms: none negative, each with the same sum above zero.
    measure : one of MEASURES
    width : float
        Of "chi2" and "gaussian", in units of the mean distance of two training images.
    """

    def __init__(self, source: Any, measure: str, width: float = 1.0) -> None:
        self._source, self._measure, self._width = clone(source), check_choice("measure", measure, MEASURES), width

    def fit(self, images: Any, seed: np.random.SeedSequence, n_jobs: int | None) -> Array:
        """Learn from training images; returns the kernel between them (n, n)."""
        known = self._source.get_params()
        own = {"n_jobs": n_jobs, "random_state": int(seed.generate_state(1)[0])}
        self._source.set_params(**{name: value for name, value in own.items() if name in known})
        rows = self._source.fit_transform(images)
        if self._measure == "chi2":
            rows = sparse.csr_array(rows)
            self._train: Array = np.ascontiguousarray(rows.toarray().T)  # bin by bin
        else:
            self._train = np.asarray(rows)
        raw = self._compare(rows)
        scale = float(np.diagonal(raw).mean()) if self._measure == "linear" else self._width * float(raw.mean())
        self._scale = scale if scale > 0.0 else 1.0
        return self._finish(raw)

    def transform(self, images: Any) -> Array:
        """The kernel between images and the training images: (n, n_train)."""
        return self._finish(self._compare(self._source.transform(images)))

    def _compare(self, rows: Any) -> Array:
        """Distances, or inner products, of rows (n, m) and the training rows: (n, n_train)."""
        if self._measure == "chi2":
            rows = sparse.csr_array(rows)
            sums = rows.sum(axis=1)
            if rows.min() < 0.0 or sums.min() <= 0.0 or np.ptp(sums) > 1e-3 * sums.max():
                raise ValueError(f"rows of {type(self._source).__name__} are no histograms of equal sum: no 'chi2'")
            return measure_chi2(rows, self._train, N_BINS)
        products = np.asarray(rows @ self._train.T)
        if self._measure == "linear":
            return products
        own, theirs = (np.einsum("ij,ij->i", each, each) for each in (rows, self._train))
        distances: Array = np.maximum(own[:, None] + theirs - 2.0 * products, 0.0)
        return distances

    def _finish(self, raw: Array) -> Array:
        return raw / self._scale if self._measure == "linear" else np.exp(-raw / self._scale)

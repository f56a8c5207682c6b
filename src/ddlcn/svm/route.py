"""Which route to the SVM's weights suits the images: features held or streamed, Gram matrix or liblinear."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ddlcn.svm.gram import gram_matrix, stream_gram
from ddlcn.svm.linear import LinearSVM, SVMSettings, fit_dual, fit_svm

Array = NDArray[Any]

# The Gram route holds three n x n matrices: 600 MB at 5,000 images.
MAX_GRAM_IMAGES = 5000


def _count_memory() -> int:
    """Bytes of memory that the machine has; 0 where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


# Features beyond this many bytes are streamed where they can be: two blocks of BLOCK_BYTES are held then, and an image
# is coded several times. A sixth of the memory, since the Gram matrix takes a copy by columns.
HELD_BYTES = max(2_000_000_000, _count_memory() // 6)
BLOCK_BYTES = 500_000_000
BYTES_PER_NONZERO = 8


class FeatureRows(Protocol):
    """Features of n images, computed when asked for."""

    @property
    def n_images(self) -> int: ...

    @property
    def n_columns(self) -> int: ...

    def take(self, rows: slice) -> Any:
        """The features of some images: csr_array (rows, n_columns)."""

    def estimate_nonzeros(self) -> int:
        """About how many nonzeros all images have together."""


@dataclass(frozen=True)
class Training:
    """A fitted SVM, and what it was fitted on: the features or their inner products, whichever there are."""

    machine: LinearSVM
    features: Any  # csr_array (n, columns) or None
    gram: Array | None  # (n, n)


def train(source: FeatureRows, y: NDArray[np.intp], settings: SVMSettings, n_jobs: int | None) -> Training:
    """Fit the SVM to images whose features can be had from `source`, by the route that suits their size.

    Parameters
    ----------
    source : FeatureRows
    y : ndarray (n,)
        Class indices.
    settings : SVMSettings
    """
    n = source.n_images
    if settings.kind == "liblinear" and n <= MAX_GRAM_IMAGES:
        n_bytes = BYTES_PER_NONZERO * source.estimate_nonzeros()
        if n_bytes > HELD_BYTES:
            n_block = max(1, min(n, BLOCK_BYTES * n // n_bytes))
            return _train_streamed(source, y, settings, n_block, n_jobs)
    features = source.take(slice(0, n))
    by_gram = settings.kind == "liblinear" and prefer_gram(n, features.nnz, settings.n_classes)
    gram = gram_matrix(features) if by_gram else None
    return Training(fit_svm(features, gram, y, settings, n_jobs), features, gram)


def _train_streamed(
    source: FeatureRows, y: NDArray[np.intp], settings: SVMSettings, n_block: int, n_jobs: int | None
) -> Training:
    n, n_classes = source.n_images, settings.n_classes
    gram = stream_gram(source.take, n, n_block)
    dual = fit_dual(gram, y, n_classes, settings.C, settings.weights, n_jobs).astype(np.float32)
    weights = np.zeros((source.n_columns, dual.shape[1]), np.float32)
    for start in range(0, n, n_block):
        rows = slice(start, min(start + n_block, n))
        weights += source.take(rows).T @ dual[rows]
    return Training(LinearSVM(weights.T, dual.sum(axis=0, dtype=np.float64), False, n_classes), None, gram)


def prefer_gram(n: int, n_nonzeros: int, n_classes: int) -> bool:
    """Whether the Gram route is the quicker one for n images with so many nonzeros in all.

    Its time grows with n^3, the inverse being shared among the classes; that of liblinear with the number of nonzeros,
    class by class. Measured: MNIST, 10 classes, 130 nonzeros an image, 1,000 images 0.5 s by the Gram matrix and 0.15 s
    by liblinear, 5,000 images 13 s and 0.4 s; AR, 100 classes, 2,000 images of 1,600 nonzeros 7 s and 28 s. The two
    models of time below fit those within a factor of three, except where neither takes a second.
    """
    by_gram = 1e-10 * n**3 * (0.5 + 0.03 * n_classes)
    by_liblinear = 1e-7 * n_classes * n_nonzeros
    return bool(n <= MAX_GRAM_IMAGES and by_gram < by_liblinear)

"""Which route to the SVM's weights suits the images: features held or streamed, Gram matrix or liblinear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.svm.feature_rows import BYTES_PER_NONZERO, FeatureRows, SpooledFeatures
from ddlcn.svm.gram import gram_matrix, stream_gram, weights_from_dual
from ddlcn.svm.linear import LinearSVM, SVMConfig, fit_dual, fit_svm

Array = NDArray[Any]

# The Gram route holds three n x n matrices: 600 MB at 5,000 images.
MAX_GRAM_IMAGES = 5000
# Features beyond this many bytes are streamed where they can be: two blocks of BLOCK_BYTES are held then, the others
# are on disk. The same on every machine, so that a model does not depend on how much memory there is.
HELD_BYTES = 2_000_000_000
BLOCK_BYTES = 500_000_000


@dataclass(frozen=True)
class Training:
    """A fitted SVM, and what it was fitted on: the features or their inner products, whichever there are."""

    svm: LinearSVM
    features: Any  # csr_array (n, columns) or None
    gram: Array | None  # (n, n)


def train(
    source: FeatureRows,
    y: NDArray[np.intp],
    config: SVMConfig,
    n_jobs: int | None,
    known: LinearSVM | None = None,
) -> Training:
    """Fit the SVM to images whose features can be had from `source`, by the route that suits their size.

    Parameters
    ----------
    source : FeatureRows
    y : ndarray (n,)
        Class indices.
    config : SVMConfig
    n_jobs : int, optional
        Threads; the result does not depend on it.
    known : LinearSVM, optional
        The SVM, where it is there already: then only what it stands on is collected.
    """
    n = source.n_images
    may_stream = config.kind == "liblinear" and n <= MAX_GRAM_IMAGES
    features = source.take_all(HELD_BYTES if may_stream else None)
    if features is None:
        return _train_streamed(source, y, config, n_jobs, known)
    by_gram = config.kind == "liblinear" and prefer_gram(n, features.nnz, config.n_classes)
    gram = gram_matrix(features) if by_gram else None
    return Training(known or fit_svm(features, gram, y, config, n_jobs), features, gram)


def _train_streamed(
    source: FeatureRows, y: NDArray[np.intp], config: SVMConfig, n_jobs: int | None, known: LinearSVM | None
) -> Training:
    n = source.n_images
    n_first = min(n, 16)
    spooled = SpooledFeatures(source)
    n_bytes = BYTES_PER_NONZERO * max(1, source.take(slice(0, n_first)).nnz) // n_first
    n_block = max(1, min(n, BLOCK_BYTES // n_bytes))
    gram = stream_gram(spooled.take, n, n_block)
    if known is not None:
        return Training(known, None, gram)
    dual = fit_dual(gram, y, config.n_classes, config.C, config.weights, n_jobs)
    weights = np.zeros((dual.shape[1], source.n_columns), np.float32)
    for start in range(0, n, n_block):
        rows = slice(start, min(start + n_block, n))
        weights += weights_from_dual(spooled.take(rows), dual[rows])
    return Training(LinearSVM(weights, dual.sum(axis=0), False, config.n_classes), None, gram)


def prefer_gram(n: int, n_nonzeros: int, n_classes: int) -> bool:
    """Whether the Gram route is the quicker one for n images with this many nonzeros in all.

    Its time grows with n^3, the inverse being shared among the classes; that of liblinear with the number of nonzeros,
    class by class. Measured: MNIST, 10 classes, 130 nonzeros an image, 1,000 images 0.5 s by the Gram matrix and 0.15 s
    by liblinear, 5,000 images 13 s and 0.4 s; AR, 100 classes, 2,000 images of 1,600 nonzeros 7 s and 28 s. The two
    models of time below fit those within a factor of three, except where neither takes a second.
    """
    by_gram = 1e-10 * n**3 * (0.5 + 0.03 * n_classes)
    by_liblinear = 1e-7 * n_classes * n_nonzeros
    return bool(n <= MAX_GRAM_IMAGES and by_gram < by_liblinear)

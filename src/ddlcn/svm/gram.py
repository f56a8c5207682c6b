"""Inner products of image features: all features at hand, or block by block without ever holding them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Columns of the features that are made dense at a time.
COLUMNS = 2048


def gram_matrix(features: Any) -> NDArray[np.float64]:
    """All inner products of the rows of a csr_array or csc_array (n, columns): (n, n), float64."""
    by_column = features.tocsc()
    return _multiply(by_column, by_column)


def stream_gram(take: Callable[[slice], Any], n: int, n_block: int) -> NDArray[np.float64]:
    """All inner products of n rows of which two blocks at a time are held.

    Parameters
    ----------
    take : function of a slice of rows
        Computes them: csr_array (rows, columns). With B = n / n_block blocks every row is computed about B / 2 times.
    n, n_block : int

    Returns
    -------
    gram : ndarray (n, n), float64
    """
    gram = np.empty((n, n))
    blocks = [slice(start, min(start + n_block, n)) for start in range(0, n, n_block)]
    for a, rows in enumerate(blocks):
        here = take(rows).tocsc()
        gram[rows, rows] = _multiply(here, here)
        for others in blocks[a + 1 :]:
            gram[rows, others] = _multiply(here, take(others).tocsc())
            gram[others, rows] = gram[rows, others].T
    return gram


def weights_from_dual(features: Any, dual: Array) -> NDArray[np.float32]:
    """The SVM's weights (rows, columns) = dual^T features, from features (n, columns) and dual (n, rows).

    In single precision, as the features are: the weights of a model must not depend on the route to them.
    """
    weights = np.zeros((dual.shape[1], features.shape[1]), np.float32)
    by_column, single = features.tocsc(), np.ascontiguousarray(dual.T, np.float32)
    for start in range(0, features.shape[1], COLUMNS):
        block = by_column[:, start : start + COLUMNS]
        if block.nnz:
            weights[:, start : start + COLUMNS] = single @ block.toarray()
    return weights


def _multiply(a: Any, b: Any) -> NDArray[np.float64]:
    """a b^T of two csc_arrays. Blocks of columns are made dense: pooled features are so dense that sparse loses."""
    product = np.zeros((a.shape[0], b.shape[0]))
    for start in range(0, a.shape[1], COLUMNS):
        left = a[:, start : start + COLUMNS]
        right = left if b is a else b[:, start : start + COLUMNS]
        if left.nnz and right.nnz:  # the half for negative codes is empty in a network of one layer
            dense = left.toarray()  # (rows, block) float32
            product += dense @ (dense if right is left else right.toarray()).T
    return product

"""Inner products of image features: all features at hand, or block by block without ever holding them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines import get_engine

Array = NDArray[Any]

# Columns of the features that are made dense at a time.
COLUMNS = 2048


def gram_matrix(features: Any) -> NDArray[np.float64]:
    """All inner products of the rows of a csr_array (n, columns): (n, n), float64."""
    return _multiply(features, features)


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
        here = take(rows)
        gram[rows, rows] = _multiply(here, here)
        for others in blocks[a + 1 :]:
            gram[rows, others] = _multiply(here, take(others))
            gram[others, rows] = gram[rows, others].T
    return gram


def weights_from_dual(features: Any, dual: Array) -> NDArray[np.float32]:
    """The SVM's weights (rows, columns) = dual^T features, from features (n, columns) and dual (n, rows).

    In single precision, as the features are: the weights of a model must not depend on the route to them.
    """
    # All weights of a column side by side, as `LinearSVM` wants them.
    weights = np.zeros((features.shape[1], dual.shape[1]), np.float32)
    single = np.ascontiguousarray(dual, np.float32)
    for columns, block in _iter_dense(features):
        np.matmul(block.T, single, out=weights[columns])
    return weights.T


def _multiply(a: Any, b: Any) -> NDArray[np.float64]:
    """a b^T of two csr_arrays. Blocks of columns are made dense: pooled features are so dense that sparse loses."""
    product = np.zeros((a.shape[0], b.shape[0]))
    if b is a:
        for _, dense in _iter_dense(a):
            product += dense @ dense.T
        return product
    for (_, left), (_, right) in zip(_iter_dense(a, True), _iter_dense(b, True), strict=True):
        product += left @ right.T
    return product


def _iter_dense(features: Any, empty: bool = False) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of columns of a csr_array (n, columns), dense (n, block), valid until the next; once over the rows.

    Blocks without any nonzero are left out unless `empty`: the half for negative codes is, in a network of one layer.
    """
    fill = get_engine().fill_columns
    features.sort_indices()
    n, n_columns = features.shape
    places = features.indptr[:-1].astype(np.int64)  # where each row goes on
    buffer = np.empty((n, min(COLUMNS, n_columns)), features.dtype)
    for start in range(0, n_columns, COLUMNS):
        end = min(start + COLUMNS, n_columns)
        dense = buffer if end - start == buffer.shape[1] else np.empty((n, end - start), features.dtype)
        n_filled = fill(features.data, features.indices, features.indptr, places, start, dense)
        if n_filled or empty:
            yield slice(start, end), dense

"""Blocks of columns made dense, one after the other, are the columns; gradients of nonzeros are those of all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ddlcn.engines import get_engine


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 7, 64, 100])
def test_all_blocks_together_are_the_matrix(width, dtype):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((9, 200), density=0.2, rng=rng, dtype=dtype, format="csr")
    matrix.data[:3] = 0.0  # stored zeros are no trouble
    places, n_filled, blocks = matrix.indptr[:-1].astype(np.int64), 0, []
    for start in range(0, 200, width):
        block = np.full((9, min(width, 200 - start)), np.nan, dtype)  # what was there before is overwritten
        n_filled += get_engine().fill_columns(matrix.data, matrix.indices, matrix.indptr, places, start, block)
        blocks.append(block)
    np.testing.assert_array_equal(np.hstack(blocks), matrix.toarray())
    assert n_filled == matrix.nnz
    np.testing.assert_array_equal(places, matrix.indptr[1:])


@pytest.mark.parametrize("n_rows", [1, 3, 11])
def test_gradients_of_the_nonzeros_are_those_of_the_whole_product(n_rows):
    rng = np.random.default_rng(n_rows)
    matrix = sparse.random_array((9, 200), density=0.2, rng=rng, format="csr")
    of_decisions, coef = rng.normal(size=(9, n_rows)), rng.normal(size=(200, n_rows))
    of_decisions[[2, 5]] = 0.0
    found = np.full(matrix.nnz, np.nan)
    get_engine().spread_decisions(of_decisions, coef, matrix.indices, matrix.indptr, 0.5, found)
    rows = np.repeat(np.arange(9), np.diff(matrix.indptr))
    np.testing.assert_allclose(found, 0.5 * (of_decisions @ coef.T)[rows, matrix.indices], atol=1e-12)

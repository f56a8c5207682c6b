"""Blocks of columns made dense, one after the other, are the columns."""

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

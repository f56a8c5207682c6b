"""Sparse rows, held once."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ddlcn.utils.sparse_rows import CSRBuilder, make_csr


def test_rows_come_out_as_they_went_in():
    rng = np.random.default_rng(0)
    # The first block is empty and later ones are fuller, so that room runs out again and again.
    blocks = [
        sparse.random_array((4, 50), density=d, format="csr", dtype=np.float32, rng=rng) for d in (0, 0.01, 0.2, 0.9)
    ]
    stack = CSRBuilder(16, 50)
    for block in blocks:
        stack.append(block)
    np.testing.assert_array_equal(stack.finish().toarray(), sparse.vstack(blocks).toarray())


def test_indices_stay_narrow_and_nothing_is_copied():
    values, columns = np.ones(3, np.float32), np.array([0, 2, 1], np.int32)
    matrix = make_csr(values, columns, np.array([0, 2, 3], np.int64), (2, 3))
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert np.shares_memory(matrix.data, values)
    assert np.shares_memory(matrix.indices, columns)

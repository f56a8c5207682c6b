"""Blocks of columns of sparse rows, made dense in one pass over the rows."""

from __future__ import annotations

from typing import Any

from ddlcn.engines.compile import kernel


@kernel
def fill_columns(values: Any, columns: Any, starts: Any, places: Any, first: int, dense: Any) -> int:
    """Make columns first .. first + block - 1 dense, zeros included; returns the number of nonzeros.

    Parameters
    ----------
    values : (nonzeros,); columns : (nonzeros,) int; starts : (n + 1,) int
        Rows of a csr_array, columns ascending.
    places : (n,) int64
        Where the nonzeros of each row begin in these columns; moved to where they end.
    dense : (n, block)
        Result.
    """
    n, block = dense.shape
    n_filled = 0
    for i in range(n):
        for c in range(block):
            dense[i, c] = 0.0
        place, end = places[i], starts[i + 1]
        while place < end and columns[place] < first + block:
            dense[i, columns[place] - first] = values[place]
            place += 1
        n_filled += place - places[i]
        places[i] = place
    return n_filled

"""Sparse rows and dense columns: blocks made dense in one pass, and gradients of the nonzeros alone."""

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


@kernel
def spread_decisions(of_decisions: Any, coef: Any, columns: Any, starts: Any, factor: float, out: Any) -> None:
    """Gradients of the nonzeros of features, from those of the decision values: factor * (of_decisions coef^T).

    Parameters
    ----------
    of_decisions : (n, rows) float64
    coef : (all columns, rows) float64
    columns : (nonzeros,) int; starts : (n + 1,) int
        Where the nonzeros are, as in a csr_array.
    out : (nonzeros,) float64
        Result.
    """
    n_rows = coef.shape[1]
    for i in range(of_decisions.shape[0]):
        is_zero = True  # an image that every row of the SVM has right
        for r in range(n_rows):
            is_zero = is_zero and of_decisions[i, r] == 0.0
        for s in range(starts[i], starts[i + 1]):
            total = 0.0
            if not is_zero:
                for r in range(n_rows):
                    total += of_decisions[i, r] * coef[columns[s], r]
            out[s] = factor * total

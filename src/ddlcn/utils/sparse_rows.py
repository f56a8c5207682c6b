"""Sparse rows, held once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]


def make_csr(values: Array, columns: Array, starts: Array, shape: tuple[int, int]) -> Any:
    """A csr_array over the given arrays, without copies, with 32-bit indices wherever they suffice.

    scipy widens the columns to 64 bits as soon as the row starts are: twice the memory, and liblinear refuses them.
    """
    index = np.int32 if len(values) <= np.iinfo(np.int32).max else np.int64
    return sparse.csr_array((values, columns, starts.astype(index, copy=False)), shape=shape, copy=False)


def stack_rows(
    blocks: Generator[Any], shape: tuple[int, int], max_bytes: int | None = None, track: Any = iter
) -> Any | None:
    """Consecutive blocks of rows as one csr_array, held once; None as soon as they need more than `max_bytes`.

    Parameters
    ----------
    blocks : generator of csr_arrays (rows of a block, columns)
        Closed when there is enough.
    shape : (rows, columns) of all
    max_bytes : int, optional
    track : function of an iterable, optional
        Wraps the blocks, to show progress.
    """
    stack = CSRBuilder(*shape)
    with closing(blocks):
        for block in track(blocks):
            stack.append(block)
            if max_bytes is not None and stack.nbytes > max_bytes:
                return None
    return stack.finish()


class CSRBuilder:
    """A CSR matrix (float32) that is filled row block by row block and never held twice.

    Room is reserved by what the first rows needed; reserved memory that is never written costs nothing.
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._shape = (n_rows, n_columns)
        self._values, self._columns = np.empty(0, np.float32), np.empty(0, np.int32)
        self._starts = np.zeros(n_rows + 1, np.int64)
        self._row = 0

    def append(self, block: Any) -> None:
        """Add the rows of a csr_array."""
        begin = int(self._starts[self._row])
        end, next_row = begin + block.nnz, self._row + block.shape[0]
        if end > len(self._values):
            # Half as much again as the rows so far promise for all.
            room = max(end, int(1.5 * end * self._shape[0] / next_row))
            self._values = _enlarge(self._values, begin, room)
            self._columns = _enlarge(self._columns, begin, room)
        self._values[begin:end] = block.data
        self._columns[begin:end] = block.indices
        self._starts[self._row + 1 : next_row + 1] = begin + block.indptr[1:]
        self._row = next_row

    @property
    def nbytes(self) -> int:
        """Bytes that the rows so far need."""
        return int(self._starts[self._row]) * (self._values.itemsize + self._columns.itemsize)

    def finish(self) -> Any:
        """The csr_array of all rows."""
        end = int(self._starts[-1])
        return make_csr(self._values[:end], self._columns[:end], self._starts, self._shape)


def _enlarge(array: Array, n_used: int, room: int) -> Array:
    larger = np.empty(room, array.dtype)
    larger[:n_used] = array[:n_used]
    return larger

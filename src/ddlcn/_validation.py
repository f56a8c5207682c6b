"""Checks of what a user passes in. Every message is one sentence that names the argument and the remedy."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_matrix(name: str, value: Any, what: str, n_columns: int | None = None) -> NDArray[np.floating[Any]]:
    """`value` as a finite, C-contiguous float32 or float64 array of shape (rows >= 1, columns >= 1).

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    what : str
        What one row is ("descriptor", "atom"), for the message.
    n_columns : int, optional
        The width that the rows must have.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a 2-D array with one {what} per row: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, one {what} per row; got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-D, one {what} per row; got shape {array.shape}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}): pass at least one {what}")
    if n_columns is not None and array.shape[1] != n_columns:
        raise ValueError(
            f"{name} has rows of width {array.shape[1]} where {n_columns} is needed: "
            f"descriptors and atoms must have the same width"
        )
    array = np.ascontiguousarray(array, dtype=array.dtype if array.dtype in (np.float32, np.float64) else np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity: remove or repair those rows first")
    return array


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}; got {value!r}")
    return int(value)


def check_number(name: str, value: Any, minimum: float = 0.0, *, above: bool = False) -> float:
    """`value` as a finite float of at least (`above`: more than) `minimum`."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not good or value < minimum or (above and value == minimum):
        raise ValueError(f"{name} must be a number {'above' if above else 'of at least'} {minimum:g}; got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value

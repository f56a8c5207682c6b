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
    bad = isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value))
    if bad or value < minimum or (above and value == minimum):
        raise ValueError(f"{name} must be a number {'above' if above else 'of at least'} {minimum:g}; got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """A SeedSequence for `random_state`; a copy if one was passed in, so that it can be used again."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63))
    elif isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    elif random_state is not None:
        random_state = check_count("random_state", random_state, minimum=0)
    return np.random.SeedSequence(random_state)


def check_per_layer(name: str, value: Any, n_layers: int) -> tuple[Any, ...]:
    """One value for all layers, or a tuple with one per layer."""
    if not isinstance(value, tuple | list):
        return (value,) * n_layers
    if len(value) != n_layers:
        raise ValueError(f"{name} has {len(value)} values for {n_layers} layers: pass one value, or one per layer")
    return tuple(value)

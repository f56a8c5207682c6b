"""The start of learning. In: descriptors X (n, m) and, optionally, some atoms. Out: n_atoms atoms.

They lie in the unit ball, as docs/method.md, "Layer 1 dictionary", requires of all atoms. Descriptors are scaled to
unit norm, also upwards: with the l1 norm of the codes bounded, a longer atom represents all that a shorter one does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Relative size of the noise that distinguishes repeated descriptors: far above float32's rounding, too small to change
# what they represent.
_JITTER = 0.01


def start_atoms(X: Array, n_atoms: int, init: Array | None, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the atoms to start from (n_atoms, m): `init`, then distinct descriptors, then noisy copies of these."""
    given = np.empty((0, X.shape[1])) if init is None else into_unit_ball(init.astype(np.float64))
    missing = n_atoms - len(given)
    chosen = distinct_rows(X, rng.permutation(np.flatnonzero(X.any(axis=1))), missing) if missing else X[:0]
    found = unit_rows(chosen.astype(np.float64))
    if len(found) < missing:
        noise = rng.standard_normal((missing - len(found), X.shape[1]))
        if len(found):
            noise *= _JITTER / np.sqrt(X.shape[1])
            noise += found[np.arange(len(noise)) % len(found)]
        found = np.concatenate([found, unit_rows(noise)])
    return np.concatenate([given, found]).astype(np.float32)


def distinct_rows(X: Array, order: Iterable[Any], count: int) -> Array:
    """Return the first `count` (or fewer) distinct rows of X in the given order, (k, m)."""
    rows: dict[bytes, int] = {}
    for i in order:
        if len(rows) == count:
            break
        rows.setdefault(X[i].tobytes(), i)
    return X[list(rows.values())] if rows else X[:0]


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale rows (k, m), none zero, to unit norm (in two steps: squares of extreme numbers overflow)."""
    rows = rows / np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def into_unit_ball(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the rows (k, m) with a norm above 1 to unit norm."""
    with np.errstate(over="ignore"):
        long = np.linalg.norm(rows, axis=1) > 1.0
    rows[long] = unit_rows(rows[long])
    return rows

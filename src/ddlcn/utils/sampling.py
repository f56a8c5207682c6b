"""Draws of images, class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def draw_per_class(
    labels: NDArray[Any], n: int, rng: np.random.Generator, pool: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """n images of every class, or all where a class has fewer: ascending indices.

    Parameters
    ----------
    labels : ndarray (images,)
    n : int
    rng : Generator
    pool : ndarray of indices, optional
        The images to draw from; None: all.
    """
    pool = np.arange(len(labels)) if pool is None else pool
    members = (pool[labels[pool] == label] for label in np.unique(labels))
    return np.sort(np.concatenate([rng.permutation(own)[:n] for own in members]))


def draw_in_proportion(labels: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """At most about n images, every class in proportion and with at least two where it has two: ascending indices."""
    if len(labels) <= n:
        return np.arange(len(labels))
    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        count = min(len(members), max(2, round(n * len(members) / len(labels))))
        chosen.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(chosen))

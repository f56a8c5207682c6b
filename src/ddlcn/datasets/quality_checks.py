"""Quality checks of a user's pictures. In: paths and labels. Out: groups of near-duplicates, and warnings as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import sparse

Array = NDArray[Any]

# Thumbnails with at least this correlation are near-duplicates.
MIN_CORRELATION = 0.995
# Above this many pictures the comparison of all pairs takes more than a minute, and is left out.
MAX_COMPARED = 20_000
# Ratio of the largest class to the smallest from which classes count as unbalanced.
UNBALANCED = 10
# Shortest side in pixels below which hardly a patch fits.
TINY = 24
# Number of names listed in a warning.
LISTED = 3


def find_duplicates(thumbnails: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return group numbers (n,), equal for near-duplicates.

    Pictures whose thumbnails look the same (resized or recompressed copies) are in one group, transitively.

    Parameters
    ----------
    thumbnails : ndarray (n, pixels)
        Of `datasets.thumbnails`, as `ImageFolder` has them.
    """
    T, n = thumbnails, len(thumbnails)
    if n > MAX_COMPARED:
        return np.arange(n)
    pairs: list[Array] = []
    for start in range(0, n, 1000):
        pairs.append(np.argwhere(T[start : start + 1000] @ T.T > MIN_CORRELATION) + [start, 0])
    rows, columns = np.concatenate(pairs).T
    graph = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(n, n))
    return np.asarray(sparse.csgraph.connected_components(graph, directed=False)[1], np.intp)


def make_remarks(paths: Sequence[Path], labels: Array, groups: NDArray[np.intp]) -> list[str]:
    """Warnings about duplicates, unbalanced classes and tiny pictures; empty if there are none.

    Parameters
    ----------
    paths : sequence of n paths
    labels : ndarray (n,)
    groups : ndarray (n,)
        From `find_duplicates`.
    """
    remarks = []
    classes, counts = np.unique(labels, return_counts=True)
    across, n_within = [], 0
    for group in np.flatnonzero(np.bincount(groups) > 1):
        members = np.flatnonzero(groups == group)
        if len(set(labels[members].tolist())) > 1:
            first = members[0]
            second = members[labels[members] != labels[first]][0]
            across.append(f"{paths[first]} ({labels[first]}) and {paths[second]} ({labels[second]})")
        n_within += len(members) - 1
    if across:
        remarks.append(f"near-duplicates in different classes: {_list(across)}. One of each is likely mislabelled.")
    if n_within:
        remarks.append(f"{n_within} of {len(paths)} pictures are near-duplicates of others; they are tested together.")
    if counts.max() >= UNBALANCED * counts.min():
        most, least = classes[counts.argmax()], classes[counts.argmin()]
        remarks.append(
            f"very unbalanced classes: {most} has {counts.max()} pictures, {least} {counts.min()}. Read the accuracy "
            f"class by class."
        )
    few = classes[counts < 5].tolist()
    if few:
        remarks.append(f"fewer than 5 pictures of {_list(few)}: expect low accuracy, and uncertain figures.")
    tiny = [path for path in paths if min(_get_size(path)) < TINY]
    if tiny:
        remarks.append(
            f"{len(tiny)} pictures have a side below {TINY} pixels, the first {tiny[0]}: too small to recognise much."
        )
    return remarks


def _get_size(path: Path) -> tuple[int, int]:
    with Image.open(path) as picture:  # the header only
        return picture.size


def _list(names: Sequence[Any]) -> str:
    shown = "; ".join(str(name) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown}; and {len(names) - LISTED} more"

"""What a person would want to know about their pictures before they believe a figure.

In: paths and labels. Out: groups of near-duplicates, and sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import sparse

from ddlcn._progress import track
from ddlcn._threads import map_threads
from ddlcn.features.images import read_image

Array = NDArray[Any]

# Pictures are compared as thumbnails of this side, with mean zero and length one.
THUMBNAIL = 24
# Thumbnails that agree to this much are the same picture to the eye.
SAME = 0.995
# Above this many pictures the comparison of all pairs takes more than a minute, and is left out.
MAX_COMPARED = 20_000
# A class with so many times the pictures of another.
UNBALANCED = 10
# A shortest side in pixels below which hardly a patch fits.
TINY = 24
# Names that a sentence lists.
LISTED = 3


def find_duplicates(paths: Sequence[Path], n_jobs: int | None = None, verbose: int = 0) -> NDArray[np.intp]:
    """A number for every picture, the same for near-duplicates: ndarray (n,).

    Pictures that look the same as thumbnails, resized or compressed anew, belong together; so do those of a chain.
    """
    n = len(paths)
    if n > MAX_COMPARED:
        return np.arange(n)
    thumbnails = track(map_threads(_make_thumbnail, paths, n_jobs), n, "looking for duplicates", verbose > 0)
    T = np.stack(list(thumbnails))
    pairs: list[Array] = []
    for start in range(0, n, 1000):
        pairs.append(np.argwhere(T[start : start + 1000] @ T.T > SAME) + [start, 0])
    rows, columns = np.concatenate(pairs).T
    graph = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(n, n))
    return np.asarray(sparse.csgraph.connected_components(graph, directed=False)[1], np.intp)


def _make_thumbnail(path: Path) -> Array:
    grey = Image.fromarray(read_image(path, max_side=8 * THUMBNAIL))
    values = np.asarray(grey.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX), np.float64).ravel()
    values -= values.mean()
    length = np.linalg.norm(values)
    return (values / length if length > 0.01 else np.zeros_like(values)).astype(
        np.float32
    )  # flat pictures tell nothing


def make_remarks(paths: Sequence[Path], labels: Array, groups: NDArray[np.intp]) -> list[str]:
    """Sentences about duplicates, unbalanced classes and tiny pictures; none where all is well.

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
        remarks.append(f"fewer than 5 pictures of {_list(few)}: expect little of them, and of the figures.")
    tiny = [path for path in paths if min(_get_size(path)) < TINY]
    if tiny:
        remarks.append(f"{len(tiny)} pictures have a side below {TINY} pixels, the first {tiny[0]}: they show little.")
    return remarks


def _get_size(path: Path) -> tuple[int, int]:
    with Image.open(path) as picture:  # the header only
        return picture.size


def _list(names: Sequence[Any]) -> str:
    shown = "; ".join(str(name) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown}; and {len(names) - LISTED} more"

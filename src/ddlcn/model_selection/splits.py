"""What is learned from and what is held out of a person's images; near-duplicates are never on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from ddlcn.utils.sampling import draw_per_class

Array = NDArray[Any]

# Above this many images one fold of four is held out, and no other: the figure is sure enough, and folds take long.
MAX_CROSS_VALIDATED = 2000
N_FOLDS = 3
HELD_OUT = 4  # one in four


@dataclass(frozen=True)
class Split:
    """What is learned from and what is tested: indices into the images."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def plan_splits(
    labels: Array, groups: NDArray[np.intp], n_per_class: int | None, one_only: bool, seed: int
) -> tuple[list[Split], str]:
    """Which images are held out, and a name for that; no split where nothing can be.

    Parameters
    ----------
    labels : ndarray (n,)
    groups : ndarray (n,)
        Images of one group are never on both sides.
    n_per_class : int or None
        Learn from this many images of every class and test the others; None: folds.
    one_only : bool
        Whether a single split is wanted in any case.
    seed : int
    """
    if n_per_class is not None:
        train = draw_per_class(labels, n_per_class, np.random.default_rng(seed))
        test = np.setdiff1d(np.flatnonzero(~np.isin(groups, groups[train])), train)
        if len(test) == 0:
            return [], f"no image was left to test beside {n_per_class} per class"
        return [Split(train, test)], f"all but {n_per_class} images per class held out"
    one_only = one_only or len(labels) > MAX_CROSS_VALIDATED
    splits, n_alone = cover_folds(labels, groups, HELD_OUT if one_only else N_FOLDS, seed)
    if not splits:
        return [], "no image could be held out: every class has a single picture"
    untested = f"; {n_alone} classes with a single picture not tested" if n_alone else ""
    if one_only:
        return splits[:1], f"{len(splits[0].test)} of {len(labels)} images held out{untested}"
    return splits, f"{len(splits)}-fold cross-validation{untested}"


def cover_folds(labels: Array, groups: NDArray[np.intp], n_folds: int, seed: int) -> tuple[list[Split], int]:
    """Folds that test every image once, at most so many, and the number of classes that are never tested.

    Those have a single picture, or copies of one: it is learned from in every fold.
    """
    classes, counts = count_groups(labels, groups)
    is_alone = np.isin(labels, classes[counts < 2])
    if is_alone.all():
        return [], len(classes)
    always, several = np.flatnonzero(is_alone), np.flatnonzero(~is_alone)
    splits = []
    for fold in split_folds(several, labels, groups, min(n_folds, int(counts[counts >= 2].min())), seed):
        near = np.isin(groups[always], groups[fold.test])  # a near-duplicate of another class
        splits.append(Split(np.sort(np.concatenate([fold.train, always[~near]])), fold.test))
    return splits, int((counts < 2).sum())


def split_folds(
    chosen: NDArray[np.intp], labels: Array, groups: NDArray[np.intp], n_folds: int, seed: int
) -> list[Split]:
    """Stratified folds of some images, given by their indices into `labels` and `groups`."""
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    return [Split(chosen[a], chosen[b]) for a, b in folds.split(chosen, labels[chosen], groups[chosen])]


def count_groups(labels: Array, groups: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """The classes (n_classes,), and the number of groups in each."""
    classes = np.unique(labels)
    return classes, np.array([len(np.unique(groups[labels == label])) for label in classes])


def count_fewest_groups(labels: Array, groups: NDArray[np.intp]) -> int:
    """Groups of the class that has the fewest."""
    return int(count_groups(labels, groups)[1].min())

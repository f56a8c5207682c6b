"""Who trains, who is tested, and who the dictionaries are learned from (docs/method.md 2.4).

In: labels, t, p, the rule, a seed. Out: indices of training, test and dictionary images. A seed means the same split
whatever the other settings, so settings can be compared in pairs. Where the distribution has runs of its own, a seed is
one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets import Dataset
from ddlcn.experiments.settings import Settings
from ddlcn.images import NamedImage
from ddlcn.utils.sampling import draw_per_class

Indices = NDArray[np.intp]

# `quick`: this many classes, and this many images of each.
QUICK_CLASSES, QUICK_IMAGES = 6, 12


@dataclass(frozen=True)
class Split:
    """Indices of images, ascending. `note` says where the settings asked for what there is not."""

    train: Indices
    test: Indices
    dictionary: Indices
    note: str = ""


def pick_run(data: Dataset, seed: int) -> Dataset:
    """The images of run number `seed`, from 0; the data set itself if it has no runs.

    Every call with the same data set and run gives the same object: methods share what was read of it.
    """
    return data if data.runs is None else _take_run(data, seed)


@lru_cache(maxsize=1)  # all methods of a seed follow each other
def _take_run(data: Dataset, run: int) -> Dataset:
    assert data.runs is not None
    chosen = data.runs == run
    if not chosen.any():
        n = len(np.unique(data.runs))
        raise ValueError(f"{data.name!r} has {n} runs and a seed is one of them: choose 0 to {n - 1}; got {run}")
    return replace(data.take(chosen), runs=None)


def take_part(data: Dataset, settings: Settings) -> tuple[list[NamedImage], Indices, NDArray[Any] | None]:
    """Images, labels and the fixed split; for `quick` a few images of a few classes."""
    if settings.quick:
        data = data.take(_choose_quick(data))
    pairs = zip(data.image_names, data.images, strict=True)
    return [NamedImage(*pair) for pair in pairs], data.labels, data.is_test


def _choose_quick(data: Dataset) -> Indices:
    chosen = []
    for c in range(min(QUICK_CLASSES, len(data.class_names))):
        groups = (
            [data.labels == c] if data.is_test is None else [(data.labels == c) & (data.is_test == s) for s in (0, 1)]
        )
        chosen += [np.flatnonzero(group)[:QUICK_IMAGES] for group in groups]
    return np.concatenate(chosen)


def draw_split(settings: Settings, labels: NDArray[np.intp], is_test: NDArray[Any] | None, seed: int) -> Split:
    """Draw training, test and dictionary images.

    Parameters
    ----------
    settings : Settings
        `train_per_class`, `dictionary_images`, `rule` and `n_test` count.
    labels : ndarray (n,), class indices
    is_test : ndarray (n,) of bool, or None
        The distribution's own split, if it has one: training images are drawn from the others only.
    seed : int
    """
    # A second number, so that these draws have nothing in common with those that the learners make from the seed.
    split_seed, dictionary_seed, test_seed = np.random.SeedSequence((seed, 1)).spawn(3)
    everyone = np.arange(len(labels))
    pool = everyone if is_test is None else everyone[~is_test]
    t = settings.train_per_class
    if t is None and is_test is None:
        raise ValueError(f"train_per_class must be given for {settings.dataset!r}, which has no split of its own")
    if t is not None and is_test is None:
        _check_spare(labels, t)
    train = pool if t is None else draw_per_class(labels, t, np.random.default_rng(split_seed), pool)
    test = everyone[is_test] if is_test is not None else np.setdiff1d(everyone, train)
    if settings.n_test:
        share = -(-settings.n_test // (int(labels.max()) + 1))
        test = draw_per_class(labels, share, np.random.default_rng(test_seed), test)

    p, note = settings.dictionary_images, ""
    if p is None:
        return Split(train, test, train if settings.rule == "clean" else everyone)
    rng = np.random.default_rng(dictionary_seed)
    if settings.rule == "published":
        return Split(train, test, draw_per_class(labels, p, rng), note)
    fewest = int(np.bincount(labels[train]).min())
    if p > fewest:
        note = f"p = {p} asked for, {fewest} training images per class there are: p = {fewest}"
    return Split(train, test, draw_per_class(labels, min(p, fewest), rng, train), note)


def draw_unlabelled(n: int, split: Split, is_test: NDArray[Any] | None, seed: int) -> Indices:
    """At most n images that the distribution has for training and that `split` does not train with, ascending.

    None where the distribution has no split of its own: there the others are the test images.
    """
    if is_test is None:
        return np.empty(0, np.intp)
    spare = np.setdiff1d(np.flatnonzero(~is_test), split.train)
    chosen: Indices = np.sort(np.random.default_rng((seed, 2)).permutation(spare)[:n])
    return chosen


def _check_spare(labels: NDArray[np.intp], n: int) -> None:
    """Whether every class keeps an image to test when n are drawn."""
    counts = np.bincount(labels)
    few = np.flatnonzero((counts > 0) & (counts <= n))
    if len(few):
        c = int(few[0])
        raise ValueError(
            f"train_per_class = {n}, but class {c} has {counts[c]} images and none would be left to test: "
            f"choose at most {counts[c] - 1}"
        )

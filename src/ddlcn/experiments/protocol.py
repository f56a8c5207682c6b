"""Who trains, who is tested, and who the dictionaries are learned from (DESIGN 2.4, 5 "Leak").

In: labels, t, p, the rule, a seed. Out: indices of training, test and dictionary images. A seed means the same split
whatever the other settings, so settings can be compared in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets import Dataset
from ddlcn.experiments.settings import Settings

Indices = NDArray[np.intp]

# `quick`: so many classes, and so many images of each.
QUICK_CLASSES, QUICK_IMAGES = 6, 12


@dataclass(frozen=True)
class Split:
    """Indices of images, ascending. `note` says where the settings asked for what there is not."""

    train: Indices
    test: Indices
    dictionary: Indices
    note: str = ""


def take_part(data: Dataset, settings: Settings) -> tuple[Any, Indices, NDArray[Any] | None]:
    """Images, labels and the fixed split; for `quick` a few images of a few classes."""
    if not settings.quick:
        return data.images, data.labels, data.is_test
    chosen = []
    for c in range(min(QUICK_CLASSES, len(data.class_names))):
        groups = (
            [data.labels == c] if data.is_test is None else [(data.labels == c) & (data.is_test == s) for s in (0, 1)]
        )
        chosen += [np.flatnonzero(group)[:QUICK_IMAGES] for group in groups]
    part = np.concatenate(chosen)
    named = [(data.image_names[i], data.images[i]) for i in part]
    return named, data.labels[part], None if data.is_test is None else data.is_test[part]


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
    train = pool if t is None else _draw(labels, pool, t, np.random.default_rng(split_seed), spare=is_test is None)
    test = everyone[is_test] if is_test is not None else np.setdiff1d(everyone, train)
    if settings.n_test:
        share = -(-settings.n_test // (int(labels.max()) + 1))
        test = _draw(labels, test, share, np.random.default_rng(test_seed), spare=False)

    p, note = settings.dictionary_images, ""
    if p is None:
        return Split(train, test, train if settings.rule == "clean" else everyone)
    rng = np.random.default_rng(dictionary_seed)
    if settings.rule == "published":
        return Split(train, test, _draw(labels, everyone, p, rng, spare=False), note)
    fewest = int(np.bincount(labels[train]).min())
    if p > fewest:
        note = f"p = {p} asked for, {fewest} training images per class there are: p = {fewest}"
    return Split(train, test, _draw(labels, train, min(p, fewest), rng, spare=False), note)


def _draw(labels: NDArray[np.intp], pool: Indices, n: int, rng: np.random.Generator, spare: bool) -> Indices:
    """n images of every class from `pool`; if `spare`, so that each class keeps at least one."""
    chosen = []
    for c in np.unique(labels):
        members = pool[labels[pool] == c]
        if spare and len(members) <= n:
            raise ValueError(
                f"train_per_class = {n}, but class {c} has {len(members)} images and none would be left to test: "
                f"choose at most {len(members) - 1}"
            )
        chosen.append(rng.permutation(members)[:n])
    return np.sort(np.concatenate(chosen))


def accuracies(confusion: NDArray[np.int64]) -> tuple[float, float]:
    """Over all test images, and the mean over classes, of a confusion matrix (true, predicted)."""
    right, total = np.diag(confusion), confusion.sum(axis=1)
    tested = total > 0
    return float(right.sum() / total.sum()), float((right[tested] / total[tested]).mean())

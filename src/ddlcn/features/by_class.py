"""The descriptors that dictionaries are learned from (DESIGN 2, "Layer 1 dictionary": p images per class; and 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.features.descriptors import Descriptors

# Descriptors per class, at most: the learner sees 500 batches of 512 in all, and 100,000 of 128 numbers are 51 MB a
# thread. A class with more gives an equal share per image, chosen at random.
MAX_DESCRIPTORS_PER_CLASS = 100_000
# Descriptors of all classes together, and images that they come from, for the dictionaries of residuals: two or more
# residuals each are about as many as the learner sees.
N_SAMPLED, MAX_SAMPLED_IMAGES = 50_000, 1000


def describe(features: Any, name: str, image: Any) -> Descriptors:
    """The descriptors of one image, by any object with `transform(images) -> list of Descriptors`.

    `name` is what the image is called in messages.
    """
    if hasattr(features, "describe"):
        descriptors: Descriptors = features.describe(image, name=name)
        return descriptors
    (descriptors,) = features.transform([image])
    return descriptors


def describe_by_class(
    features: Any,
    named: Sequence[tuple[str, Any]],
    labels: NDArray[np.intp],
    n_images: int | None,
    seed: np.random.SeedSequence,
) -> list[Callable[[], NDArray[Any]]]:
    """For every class a function that returns its descriptors (n_c, m) when called, so that they need not all be held.

    Parameters
    ----------
    features : object with transform(images)
    named : sequence of (name, image)
    labels : ndarray (n,)
        Class indices 0, 1, ...
    n_images : int or None
        How many images of each class to use, drawn at random; None means all.
    seed : SeedSequence
        Every class draws from a seed of its own.
    """

    def of_class(c: int, class_seed: np.random.SeedSequence) -> Callable[[], NDArray[Any]]:
        def describe_class() -> NDArray[Any]:
            rng = np.random.default_rng(class_seed)
            members = np.flatnonzero(labels == c)
            if n_images is not None and n_images < len(members):
                members = np.sort(rng.choice(members, n_images, replace=False))
            share = -(-MAX_DESCRIPTORS_PER_CLASS // len(members))
            parts = []
            for i in members.tolist():
                values = describe(features, *named[i]).values
                if len(values) > share:
                    values = values[np.sort(rng.choice(len(values), share, replace=False))]
                parts.append(values)
            return np.concatenate(parts)

        return describe_class

    return [of_class(c, class_seed) for c, class_seed in enumerate(seed.spawn(int(labels.max()) + 1))]


def sample_descriptors(features: Any, named: Sequence[tuple[str, Any]], seed: np.random.SeedSequence) -> NDArray[Any]:
    """About N_SAMPLED descriptors (n, m), drawn at random in equal shares from images drawn at random."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(named))[:MAX_SAMPLED_IMAGES])
    share = -(-N_SAMPLED // len(chosen))
    parts = []
    for i in chosen.tolist():
        values = describe(features, *named[i]).values
        parts.append(values[np.sort(rng.permutation(len(values))[:share])])
    return np.concatenate(parts)

"""The descriptors that dictionaries are learned from (docs/method.md, "Layer 1 dictionary", and 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors.store import describe
from ddlcn.images import NamedImage
from ddlcn.utils.threads import map_threads

# Descriptors per class, at most: the learner sees 500 batches of 512 in all, and 100,000 of 128 numbers are 51 MB a
# thread. A class with more gives an equal share per image, chosen at random.
MAX_DESCRIPTORS_PER_CLASS = 100_000
# Descriptors of all classes together, and images that they come from, for dictionaries that all classes share: two or
# more residuals each are about as many as the learner sees.
N_SAMPLED, MAX_SAMPLED_IMAGES = 50_000, 1000


def describe_by_class(
    descriptors: Any,
    items: Sequence[NamedImage],
    labels: NDArray[np.intp],
    n_images: int | None,
    seed: np.random.SeedSequence,
) -> list[Callable[[], NDArray[Any]]]:
    """For every class a function that returns its descriptors (n_c, m), so that they need not all be held.

    Parameters
    ----------
    descriptors : object with transform(images)
    items : sequence of n images
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
                values = describe(descriptors, items[i]).values
                if len(values) > share:
                    values = values[np.sort(rng.choice(len(values), share, replace=False))]
                parts.append(values)
            return np.concatenate(parts)

        return describe_class

    return [of_class(c, class_seed) for c, class_seed in enumerate(seed.spawn(int(labels.max()) + 1))]


def sample_descriptors(
    descriptors: Any, items: Sequence[NamedImage], seed: np.random.SeedSequence, n_jobs: int | None = None
) -> NDArray[Any]:
    """About N_SAMPLED descriptors (n, m), drawn at random in equal shares from images drawn at random."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(items))[:MAX_SAMPLED_IMAGES])
    share = -(-N_SAMPLED // len(chosen))
    parts = []
    for described in map_threads(lambda i: describe(descriptors, items[i]), chosen.tolist(), n_jobs):
        parts.append(described.values[np.sort(rng.permutation(len(described))[:share])])
    return np.concatenate(parts)

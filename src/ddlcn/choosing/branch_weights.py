"""How much each of several kinds of descriptors counts, by what they recognise on folds of the training images.

Everything is learned anew on each fold, dictionaries included: atoms that have seen an image recognise it too well, and
some descriptors gain more from that than others.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ddlcn.blocks import Encoding
from ddlcn.choosing.losses import SCALES, list_losses
from ddlcn.configuration import EncoderConfig
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.svm import decide_by_dual, fit_dual, gram_matrix, to_logits
from ddlcn.utils.sampling import draw_per_class

Array = NDArray[Any]

# Weights of the first of two branches that are tried; of more branches, each alone and all alike.
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
# Images by which weights are chosen, at most, and folds.
MAX_IMAGES, N_FOLDS = 1000, 2


def choose_branch_weights(
    config: EncoderConfig, training: TrainingImages, seeds: Seeds, n_jobs: int | None
) -> tuple[float, ...]:
    """The weights with the least logistic loss on held-out images; ties go to the most even.

    Not those that recognise most images: where nearly all are recognised, that says nothing.

    Parameters
    ----------
    config : EncoderConfig
    training : TrainingImages
    seeds : Seeds
        Copied: they can be used again.
    n_jobs : int, optional

    Returns
    -------
    weights : tuple of float
        Their sum is one. Those of the configuration, if it has any; even where a class has a single image.
    """
    if config.weights is not None:
        return config.weights
    n_branches, labels = len(config.branches), training.labels
    even = weigh_evenly(n_branches)
    n_folds = min(N_FOLDS, int(np.bincount(labels).min()))
    if n_folds < 2 or n_branches == 1:
        return even
    seeds = copy.deepcopy(seeds)
    rng = np.random.default_rng(seeds.folds)
    n_classes = len(training.classes)
    chosen = draw_per_class(labels, max(n_folds, MAX_IMAGES // n_classes), rng)
    y = labels[chosen]
    candidates = _list_candidates(n_branches)
    losses = np.zeros((len(candidates), len(SCALES)))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in folds.split(y, y):
        items = [training.items[chosen[i]] for i in np.concatenate([train, test])]
        n, inside = len(train), TrainingImages(items[: len(train)], y[train], np.arange(n_classes))
        grams = []
        for branch_config in config.branches:
            fresh = replace(branch_config, descriptors=clone(branch_config.descriptors, safe=False))
            branch = learn_branch(fresh, inside, copy.deepcopy(seeds), n_jobs)
            grams.append(gram_matrix(Encoding([branch], (1.0,)).transform(items, n_jobs)))
        for i, weights in enumerate(candidates):
            gram = np.sum([weight * own for weight, own in zip(weights, grams, strict=True)], axis=0)
            dual = fit_dual(gram[:n, :n], y[train], n_classes, config.C, np.ones(n_classes), n_jobs)
            losses[i] += list_losses(to_logits(decide_by_dual(gram[n:, :n], dual)), y[test])
    unevenness = [float(np.square(np.array(weights) - even).sum()) for weights in candidates]
    least = losses.min(axis=1)  # each at the scale that suits it
    return candidates[min(range(len(candidates)), key=lambda i: (least[i], unevenness[i]))]


def weigh_evenly(n: int) -> tuple[float, ...]:
    """Equal weights of n branches."""
    return (1 / n,) * n


def _list_candidates(n: int) -> list[tuple[float, ...]]:
    if n == 2:
        return [(weight, 1 - weight) for weight in WEIGHTS]
    return [weigh_evenly(n), *(tuple(row) for row in np.eye(n).tolist())]

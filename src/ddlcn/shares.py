"""How much each of several kinds of descriptors shall count, by what they recognise on folds of the training images.

Everything is learned anew on each fold, dictionaries included: atoms that have seen an image recognise it too well, and
some descriptors profit more from that than others.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ddlcn.branches import connect, learn_branch, share_evenly
from ddlcn.stream import NamedImage
from ddlcn.svm import fit_dual, gram_matrix

Array = NDArray[Any]

# Shares of the first of two branches that are tried; of more branches, each alone and all alike.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
# By which decision values are multiplied to be logarithms of probabilities.
SCALES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
# Images by which shares are judged, at most, and folds.
MAX_JUDGED, N_FOLDS = 1000, 2


def choose_shares(
    recipes: Sequence[tuple[Any, Any, dict[str, Any]]],
    named: Sequence[NamedImage],
    labels: NDArray[np.intp],
    C: float,
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
) -> tuple[float, ...]:
    """The shares whose decisions are the surest and rightest: the least logistic loss; ties go to the most even.

    Not the most images recognised: where nearly all are, that says nothing.

    Parameters
    ----------
    recipes : sequence of (features, classifier, settings)
        For every kind of descriptor, as `learn_branch` takes them.
    named, labels
        Training images and class indices.
    C : float
        Of the SVM.
    seeds : six SeedSequences
        Those of `learn_branch`, and one for the folds. They are not used up.
    n_jobs : int, optional

    Returns
    -------
    shares : tuple of float
        Their sum is one. Even where a class has a single image.
    """
    even = share_evenly(len(recipes))
    n_folds = min(N_FOLDS, int(np.bincount(labels).min()))
    if n_folds < 2 or len(recipes) == 1:
        return even
    *learning, folding = copy.deepcopy(list(seeds))
    rng = np.random.default_rng(folding)
    chosen = _draw_evenly(labels, MAX_JUDGED, n_folds, rng)
    y, n_classes = labels[chosen], int(labels.max()) + 1
    candidates = _list_candidates(len(recipes))
    losses = np.zeros((len(candidates), len(SCALES)))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, test in folds.split(y, y):
        images = [named[chosen[i]] for i in np.concatenate([train, test])]
        grams, n = [], len(train)
        for features, classifier, settings in recipes:
            what = (images[:n], y[train], np.arange(n_classes), copy.deepcopy(learning))
            branch = learn_branch(classifier, settings, clone(features, safe=False), *what)
            grams.append(gram_matrix(connect([branch], [settings], (1.0,)).transform(images, n_jobs)))
        for i, shares in enumerate(candidates):
            gram = np.sum([share * own for share, own in zip(shares, grams, strict=True)], axis=0)
            dual = fit_dual(gram[:n, :n], y[train], n_classes, C, np.ones(n_classes), n_jobs)
            scores = gram[n:, :n] @ dual + dual.sum(axis=0)
            if n_classes == 2:
                scores = np.hstack([-scores, scores])
            for j, scale in enumerate(SCALES):
                losses[i, j] -= log_softmax(scale * scores, axis=1)[np.arange(len(test)), y[test]].sum()
    unevenness = [float(np.square(np.array(shares) - even).sum()) for shares in candidates]
    least = losses.min(axis=1)  # each at the scale that suits it
    return candidates[min(range(len(candidates)), key=lambda i: (least[i], unevenness[i]))]


def _list_candidates(n: int) -> list[tuple[float, ...]]:
    if n == 2:
        return [(share, 1 - share) for share in SHARES]
    return [share_evenly(n), *(tuple(row) for row in np.eye(n).tolist())]


def _draw_evenly(labels: NDArray[np.intp], n: int, least: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """About n images, equally many of every class and at least `least`."""
    share = max(least, n // (int(labels.max()) + 1))
    parts = [rng.permutation(np.flatnonzero(labels == c))[:share] for c in range(int(labels.max()) + 1)]
    return np.sort(np.concatenate(parts))

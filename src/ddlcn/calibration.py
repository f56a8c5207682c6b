"""Decision values in, probabilities out: one temperature, found on folds of the training images.

p = softmax(tau * decision values). One number cannot overfit a handful of images and never changes who wins. tau makes the
decisions of held-out folds as likely as possible. Only the Gram matrix of the training features is needed for that, so a
classifier keeps that, for at most MAX_IMAGES images, until probabilities are asked for.

The dictionaries are those learned on all training images, held-out folds included, so with very few images per class
the probabilities come out somewhat too sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from sklearn.model_selection import StratifiedKFold

from ddlcn.svm import fit_dual, fit_pairs, gram_matrix

Array = NDArray[Any]

# One number needs no more, and the Gram matrix of 2,000 images (32 MB) still travels well in a pickle.
MAX_IMAGES = 2000
N_FOLDS = 5
# Where some class has a single image there is nothing to hold out. The rule then: the temperature that folds gave with
# two images per class on scikit-learn's digits (median of five draws), rounded.
TEMPERATURE_WITHOUT_FOLDS = 5.0


@dataclass
class Calibrator:
    """What is needed to find the temperature when probabilities are first asked for, and then the temperature."""

    gram: Array | None  # (n, n) inner products of training features; dropped once the temperature is known
    y: NDArray[np.intp]  # (n,) class indices
    n_classes: int
    C: float
    kind: str
    weights: Array  # (n_classes,)
    seed: int
    temperature: float | None = None

    @classmethod
    def prepare(
        cls,
        features: Any,
        gram: Array | None,
        y: NDArray[np.intp],
        n_classes: int,
        C: float,
        kind: str,
        weights: Array,
        seed: np.random.SeedSequence,
    ) -> Calibrator:
        """Keep a sample of the training images: of the Gram matrix if there is one, else of the features' own."""
        rng = np.random.default_rng(seed)
        chosen = sample_images(y, rng)
        kept = gram_matrix(features[chosen]) if gram is None else gram[np.ix_(chosen, chosen)]
        return cls(kept, y[chosen], n_classes, C, kind, weights, int(rng.integers(2**31)))

    def probabilities(self, decisions: Array, n_jobs: int | None) -> Array:
        """Probabilities (n, classes) of decision values (n, classes), or (n,) for two classes."""
        if self.temperature is None:
            assert self.gram is not None
            self.temperature = fit_temperature(
                self.gram, self.y, self.n_classes, self.C, self.kind, self.weights, self.seed, n_jobs
            )
            self.gram = None
        return np.asarray(special.softmax(self.temperature * _logits(decisions), axis=1))


def sample_images(y: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """At most about MAX_IMAGES images, every class in proportion and with at least two where it has two."""
    if len(y) <= MAX_IMAGES:
        return np.arange(len(y))
    chosen = []
    for c in np.unique(y):
        members = np.flatnonzero(y == c)
        count = min(len(members), max(2, round(MAX_IMAGES * len(members) / len(y))))
        chosen.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(chosen))


def fit_temperature(
    gram: Array, y: NDArray[np.intp], n_classes: int, C: float, kind: str, weights: Array, seed: int, n_jobs: int | None
) -> float:
    """The temperature for an SVM on these images.

    Parameters
    ----------
    gram : ndarray (n, n)
        Inner products of the training features.
    y : ndarray (n,)
        Class indices.
    kind : "liblinear" or "libsvm"
    """
    smallest = int(np.bincount(y, minlength=n_classes).min())
    if smallest < 2:
        return TEMPERATURE_WITHOUT_FOLDS
    shape = (len(y),) if n_classes == 2 else (len(y), n_classes)
    decisions = np.empty(shape)
    folds = StratifiedKFold(min(N_FOLDS, smallest), shuffle=True, random_state=seed)
    for train, test in folds.split(gram, y):
        block = gram[np.ix_(train, train)]
        across = gram[np.ix_(test, train)]
        if kind == "libsvm":
            decisions[test] = fit_pairs(block, y[train], C, weights).decision_function(across)
        else:
            dual = fit_dual(block, y[train], n_classes, C, weights, n_jobs)
            values = across @ dual + dual.sum(axis=0)
            decisions[test] = values[:, 0] if n_classes == 2 else values

    def loss(log_temperature: float) -> float:
        likelihood = special.log_softmax(np.exp(log_temperature) * _logits(decisions), axis=1)
        return float(-likelihood[np.arange(len(y)), y].mean())

    # Between 1/100 and 1,000: beyond, the probabilities no longer differ from uniform or from certain.
    found = optimize.minimize_scalar(loss, bounds=(np.log(0.01), np.log(1000.0)), method="bounded")
    return float(np.exp(found.x))


def _logits(decisions: Array) -> Array:
    return np.column_stack([-decisions, decisions]) if decisions.ndim == 1 else decisions

"""A model and labelled images that it has not seen in, what can be counted about it out.

Images of classes that the model does not know are unknown ones: they do not count for the accuracy, but for how well it
tells what is none of its classes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import roc_auc_score

from ddlcn._progress import track
from ddlcn.predictions import Prediction, predict_each

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

Array = NDArray[Any]

CONFIDENCE = 0.95
# Bins of the winner's probability, for the calibration error.
N_BINS = 15


@dataclass(frozen=True)
class Findings:
    """What held-out images showed.

    Attributes
    ----------
    how : str
        In words: "3-fold cross-validation", ...
    truth, winners : ndarrays (n,)
        Labels of the images that were tested, and what they were taken for.
    """

    how: str
    truth: Array
    winners: Array

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.truth == self.winners))

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, at 95 %."""
        right = stats.binomtest(int(np.sum(self.truth == self.winners)), len(self.truth))
        low, high = right.proportion_ci(CONFIDENCE, method="wilson")
        return float(low), float(high)

    @property
    def mean_over_classes(self) -> float:
        return float(np.mean([np.mean(self.winners[self.truth == label] == label) for label in np.unique(self.truth)]))

    def list_confusions(self, n: int = 5) -> list[tuple[Any, Any, int]]:
        """The pairs that are confused most: (class, taken for, how often)."""
        wrong = self.truth != self.winners
        pairs, counts = np.unique(
            np.stack([self.truth[wrong], self.winners[wrong]], axis=1), axis=0, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")[:n]
        return [(pairs[i, 0], pairs[i, 1], int(counts[i])) for i in order]


@dataclass(frozen=True)
class ClassResult:
    """One class: how many images it has, how many were recognised, and what the others were taken for most often."""

    label: Any
    n_images: int
    n_right: int
    n_claimed: int  # images taken for it, rightly or not
    taken_for: Any  # None where all were recognised

    @property
    def recall(self) -> float:
        return self.n_right / self.n_images

    @property
    def precision(self) -> float | None:
        """None where nothing was taken for it."""
        return self.n_right / self.n_claimed if self.n_claimed else None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a model makes of labelled images.

    Attributes
    ----------
    classes : ndarray (n_classes,)
        That the model knows.
    labels : ndarray (n,)
        Of the images that could be read.
    predictions : list of n Predictions
    unreadable : list of Predictions
    seconds_per_image : float
        All cores together.
    """

    classes: Array
    labels: Array
    predictions: list[Prediction]
    unreadable: list[Prediction]
    seconds_per_image: float

    @cached_property
    def is_of_known_class(self) -> NDArray[np.bool_]:
        return np.isin(self.labels, self.classes)

    @cached_property
    def findings(self) -> Findings:
        """Accuracy, interval, confusions, over the images of known classes."""
        own = self.is_of_known_class
        winners = np.array([prediction.label for prediction in self.predictions])
        return Findings(f"{own.sum()} images", self.labels[own], winners[own])

    @cached_property
    def confidences(self) -> Array:
        """Probability of the winner (n,)."""
        return np.array([prediction.ranking[0][1] for prediction in self.predictions])

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """(class, taken for), counts."""
        truth = np.searchsorted(self.classes, self.findings.truth)
        winners = np.searchsorted(self.classes, self.findings.winners)
        matrix = np.zeros((len(self.classes), len(self.classes)), np.int64)
        np.add.at(matrix, (truth, winners), 1)
        return matrix

    @cached_property
    def by_class(self) -> list[ClassResult]:
        """Classes with images, the worst recognised first."""
        results = []
        for c in np.flatnonzero(self.confusion.sum(axis=1)):
            row = self.confusion[c].copy()
            n_right, row[c] = int(row[c]), 0
            taken_for = self.classes[row.argmax()] if row.any() else None
            n_claimed = int(self.confusion[:, c].sum())
            results.append(ClassResult(self.classes[c], int(self.confusion[c].sum()), n_right, n_claimed, taken_for))
        return sorted(results, key=lambda result: result.recall)

    @cached_property
    def calibration_error(self) -> float:
        """Expected calibration error: by how much promised and kept probability differ, in the mean over images."""
        own = self.is_of_known_class
        return expected_calibration_error(self.confidences[own], self.findings.truth == self.findings.winners)

    @cached_property
    def area_for_unknown(self) -> float | None:
        """Area under the ROC curve of known against unknown classes; None where there are not both."""
        own = self.is_of_known_class
        return float(roc_auc_score(own, self.confidences)) if own.any() and not own.all() else None

    @cached_property
    def rejected(self) -> tuple[float | None, float | None]:
        """Share of images that are taken for unknown: of known classes, of unknown ones; None where there are none."""
        known, own = np.array([p.is_known for p in self.predictions]), self.is_of_known_class
        shares = [float(np.mean(~known[part])) if part.any() else None for part in (own, ~own)]
        return shares[0], shares[1]

    def list_worst(self, n: int) -> NDArray[np.intp]:
        """Images of known classes that are wrong and most sure of it: indices."""
        winners = np.array([prediction.label for prediction in self.predictions])
        wrong = np.flatnonzero(self.is_of_known_class & (winners != self.labels))
        return wrong[np.argsort(-self.confidences[wrong], kind="stable")][:n]


def expected_calibration_error(confidences: Array, right: NDArray[np.bool_]) -> float:
    """Mean over images of |probability promised - share that is right|, both taken over bins of equal width."""
    bins = np.minimum((confidences * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    gaps = np.abs(np.bincount(bins, confidences, N_BINS) - np.bincount(bins, right, N_BINS))
    return float(gaps.sum() / counts.sum())


def evaluate(
    model: DDLCNClassifier,
    paths: Sequence[Any],
    labels: Any,
    skipped: Sequence[tuple[Any, str]] = (),
    show: bool = False,
) -> Evaluation:
    """Judge labelled images.

    Parameters
    ----------
    model : DDLCNClassifier
    paths : sequence of n images
    labels : sequence of n labels
        Where the model's classes are numbers, their names will do: folders have no others.
    skipped : sequence of (path, reason)
        Files that are known to be unreadable, to be listed with those found now.
    show : bool
        Whether to show progress.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "U" and model.classes_.dtype.kind != "U":
        by_name = {str(label): label for label in model.classes_.tolist()}
        strange = [name for name in labels.tolist() if name not in by_name]
        if strange:
            raise ValueError(f"{strange[0]!r} is none of the model's classes, which are {', '.join(by_name)}")
        labels = np.array([by_name[name] for name in labels.tolist()])
    begin = time.perf_counter()
    judged = list(track(predict_each(model, [(str(p), p) for p in paths]), len(paths), "judging images", show))
    seconds = (time.perf_counter() - begin) / max(1, len(judged))
    readable = np.array([not prediction.error for prediction in judged], bool)
    if not np.isin(labels[readable], model.classes_).any():
        known = ", ".join(map(str, model.classes_[:5]))
        raise ValueError(f"no image is of a class that the model knows ({known}, ...): nothing can be counted")
    unreadable = [Prediction(str(path), [], False, reason) for path, reason in skipped]
    unreadable += [prediction for prediction in judged if prediction.error]
    predictions = [prediction for prediction in judged if not prediction.error]
    return Evaluation(model.classes_, labels[readable], predictions, unreadable, seconds)

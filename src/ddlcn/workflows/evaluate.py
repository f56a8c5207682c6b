"""A model and labelled images that it has not seen in, what can be counted about it out.

Images of classes that the model does not know are unknown ones: they do not count for the accuracy, but for how well it
tells what is none of its classes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ddlcn.classifier import DDLCNClassifier
from ddlcn.model_selection.metrics import TestResult, count_confusions, expected_calibration_error
from ddlcn.utils.progress import track
from ddlcn.workflows.learned_from import count_learned
from ddlcn.workflows.predict import Prediction, predict_each

Array = NDArray[Any]


@dataclass(frozen=True)
class ClassResult:
    """One class: how many images it has, how many were recognised, and what the others were predicted as most often."""

    label: Any
    n_images: int
    n_right: int
    n_claimed: int  # images predicted as it, rightly or not
    predicted_as: Any  # None where all were recognised

    @property
    def recall(self) -> float:
        return self.n_right / self.n_images

    @property
    def precision(self) -> float | None:
        """None where nothing was predicted as it."""
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
    n_learned : int
        Of the images, files that the model learned from, as far as it knows.
    """

    classes: Array
    labels: Array
    predictions: list[Prediction]
    unreadable: list[Prediction]
    seconds_per_image: float
    n_learned: int = 0

    @cached_property
    def remark(self) -> str:
        """What to know before the figures are read; "" if nothing."""
        if not self.n_learned:
            return ""
        return (
            f"the model learned from {self.n_learned} of these {len(self.labels)} pictures: "
            "the accuracy is not that on new ones"
        )

    @cached_property
    def is_of_known_class(self) -> NDArray[np.bool_]:
        return np.isin(self.labels, self.classes)

    @cached_property
    def result(self) -> TestResult:
        """Accuracy, interval, confusions, over the images of known classes."""
        own = self.is_of_known_class
        y_pred = np.array([prediction.label for prediction in self.predictions])
        return TestResult(f"{own.sum()} images", self.labels[own], y_pred[own])

    @cached_property
    def confidences(self) -> Array:
        """Probability of the winner (n,)."""
        return np.array([prediction.ranking[0][1] for prediction in self.predictions])

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Counts (class, predicted as)."""
        y_true, y_pred = (np.searchsorted(self.classes, y) for y in (self.result.y_true, self.result.y_pred))
        return count_confusions(y_true, y_pred, len(self.classes))

    @cached_property
    def by_class(self) -> list[ClassResult]:
        """Classes with images, the worst recognised first."""
        results = []
        for c in np.flatnonzero(self.confusion.sum(axis=1)):
            row = self.confusion[c].copy()
            n_right, row[c] = int(row[c]), 0
            predicted_as = self.classes[row.argmax()] if row.any() else None
            n_claimed = int(self.confusion[:, c].sum())
            results.append(ClassResult(self.classes[c], int(self.confusion[c].sum()), n_right, n_claimed, predicted_as))
        return sorted(results, key=lambda result: result.recall)

    @cached_property
    def calibration_error(self) -> float:
        """Expected calibration error: by how much promised and kept probability differ, in the mean over images."""
        own = self.is_of_known_class
        return expected_calibration_error(self.confidences[own], self.result.y_true == self.result.y_pred)

    @cached_property
    def area_for_unknown(self) -> float | None:
        """Area under the ROC curve of known against unknown classes; None where there are not both."""
        own = self.is_of_known_class
        return float(roc_auc_score(own, self.confidences)) if own.any() and not own.all() else None

    @cached_property
    def rejected(self) -> tuple[float | None, float | None]:
        """Share of images rejected as unknown: of known classes, of unknown ones; None where there are none."""
        known, own = np.array([p.is_known for p in self.predictions]), self.is_of_known_class
        shares = [float(np.mean(~known[part])) if part.any() else None for part in (own, ~own)]
        return shares[0], shares[1]

    def list_worst(self, n: int) -> NDArray[np.intp]:
        """Images of known classes that are wrong and most sure of it: indices."""
        y_pred = np.array([prediction.label for prediction in self.predictions])
        wrong = np.flatnonzero(self.is_of_known_class & (y_pred != self.labels))
        return wrong[np.argsort(-self.confidences[wrong], kind="stable")][:n]


def evaluate(
    model: DDLCNClassifier,
    paths: Sequence[Any],
    labels: Any,
    skipped: Sequence[tuple[Any, str]] = (),
    show: bool = False,
) -> Evaluation:
    """Predict labelled images, and compare.

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
    everything = list(track(predict_each(model, [(str(p), p) for p in paths]), len(paths), "predicting images", show))
    seconds = (time.perf_counter() - begin) / max(1, len(everything))
    readable = np.array([not prediction.error for prediction in everything], bool)
    if not np.isin(labels[readable], model.classes_).any():
        known = ", ".join(map(str, model.classes_[:5]))
        raise ValueError(f"no image is of a class that the model knows ({known}, ...): nothing can be counted")
    unreadable = [Prediction(str(path), [], False, reason) for path, reason in skipped]
    unreadable += [prediction for prediction in everything if prediction.error]
    predictions = [prediction for prediction in everything if not prediction.error]
    n_learned = count_learned(model.card_, paths, model.n_jobs)
    return Evaluation(model.classes_, labels[readable], predictions, unreadable, seconds, n_learned)

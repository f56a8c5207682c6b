"""Labels and predictions in, figures out: both accuracies, an interval, confusions, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[Any]

CONFIDENCE = 0.95
# Bins of the winner's probability, for the calibration error.
N_BINS = 15


@dataclass(frozen=True)
class TestResult:
    """What images that a model has not seen showed.

    Attributes
    ----------
    description : str
        How they were chosen: "3-fold cross-validation", ...
    y_true, y_pred : ndarrays (n,)
        Labels of the images, and what they were predicted as.
    """

    __test__ = False  # for pytest: a result, not a test

    description: str
    y_true: Array
    y_pred: Array

    @property
    def accuracy(self) -> float:
        return float(np.mean(self.y_true == self.y_pred))

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, at 95 %."""
        right = stats.binomtest(int(np.sum(self.y_true == self.y_pred)), len(self.y_true))
        low, high = right.proportion_ci(CONFIDENCE, method="wilson")
        return float(low), float(high)

    @property
    def balanced_accuracy(self) -> float:
        """Mean over classes."""
        return balanced_accuracy(self.y_true, self.y_pred)

    def list_confusions(self, n: int = 5) -> list[tuple[Any, Any, int]]:
        """The pairs that are confused most: (class, predicted as, how often)."""
        wrong = self.y_true != self.y_pred
        pairs, counts = np.unique(
            np.stack([self.y_true[wrong], self.y_pred[wrong]], axis=1), axis=0, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")[:n]
        return [(pairs[i, 0], pairs[i, 1], int(counts[i])) for i in order]


def balanced_accuracy(y_true: Array, y_pred: Array) -> float:
    """Share of images recognised, as the mean over the classes in `y_true`.

    scikit-learn's function of that name warns about predictions of classes that have no image; here they are wrong.
    """
    return float(np.mean([np.mean(y_pred[y_true == label] == label) for label in np.unique(y_true)]))


def count_confusions(y_true: NDArray[np.intp], y_pred: NDArray[np.intp], n_classes: int) -> NDArray[np.int64]:
    """Counts (class, predicted as) of class indices."""
    matrix = np.zeros((n_classes, n_classes), np.int64)
    np.add.at(matrix, (y_true, y_pred), 1)
    return matrix


def expected_calibration_error(confidences: Array, right: NDArray[np.bool_]) -> float:
    """Mean over images of |probability promised - share that is right|, both taken over bins of equal width."""
    bins = np.minimum((confidences * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    gaps = np.abs(np.bincount(bins, confidences, N_BINS) - np.bincount(bins, right, N_BINS))
    return float(gaps.sum() / counts.sum())

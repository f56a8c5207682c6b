"""The classification error that joint training minimises: the SVM's own objective, per image (docs/joint.md).

    1/n sum_i sum_rows c_i max(0, 1 - y_i (w . f_i + b))^2  +  1/(2 C n) (||w||^2 + b^2)

with one row per class (one for two classes) and the costs c of `class_weight`, as in `svm.linear`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.svm import SVMConfig, one_against_rest

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class HingeLoss:
    """Squared hinge loss of n training images.

    Attributes
    ----------
    signs, costs : ndarrays (rows, n)
        Whether an image belongs to the row's class, and how much it counts; the mean over classes is one.
    penalty : float
        Of the squared weights: 1 / (C rows that the SVM learns from).
    """

    signs: Array
    costs: Array
    penalty: float

    @classmethod
    def prepare(cls, labels: NDArray[np.intp], config: SVMConfig, n_copies: int = 0) -> HingeLoss:
        """For images with these class indices (n,), of each of which the SVM also sees so many copies."""
        signs, costs = one_against_rest(labels, config.n_classes, config.C, config.weights)
        return cls(signs, costs / config.C, 1.0 / (config.C * len(labels) * (1 + n_copies)))

    def measure(self, decisions: Array, chosen: NDArray[np.intp]) -> tuple[float, Array]:
        """Mean loss of some images, and its gradient (n, rows) with respect to their decision values (n, rows)."""
        signs, costs = self.signs[:, chosen].T, self.costs[:, chosen].T
        short = np.maximum(0.0, 1.0 - signs * decisions)
        return float((costs * short**2).sum() / len(chosen)), -2.0 * costs * signs * short / len(chosen)

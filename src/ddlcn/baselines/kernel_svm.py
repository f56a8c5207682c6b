"""Support vector machines on a given kernel, one class against the rest: a matrix of similarities in, decisions out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from ddlcn.baselines.base import Labels
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]


@dataclass(frozen=True)
class KernelSVM:
    """Fitted machines; one for two classes.

    Attributes
    ----------
    dual : ndarray (n_train, n_machines)
        Weights of the training images.
    intercept : ndarray (n_machines,)
    """

    dual: Array
    intercept: Array

    def decide(self, similarities: Array) -> Array:
        """Decisions (n, n_classes) from similarities to the training images (n, n_train); (n,) for two classes."""
        decisions = similarities @ self.dual + self.intercept
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions


def fit_kernel_svm(gram: Array, y: Labels, n_classes: int, C: float, n_jobs: int | None = None) -> KernelSVM:
    """Fit one machine per class, hinge loss (scikit-learn's SVC).

    Parameters
    ----------
    gram : ndarray (n, n)
    y : ndarray (n,), class indices
    n_classes : int
    C : float
    n_jobs : int, optional
        Threads.
    """

    def fit(c: int) -> tuple[Array, float]:
        svm = SVC(C=C, kernel="precomputed").fit(gram, y == c)
        dual = np.zeros(len(y))
        dual[svm.support_] = svm.dual_coef_[0]
        return dual, float(svm.intercept_[0])

    duals, intercepts = zip(*map_threads(fit, [1] if n_classes == 2 else range(n_classes), n_jobs), strict=True)
    return KernelSVM(np.column_stack(duals), np.array(intercepts))

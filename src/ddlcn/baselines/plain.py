"""What anybody would try first: a support vector machine, and the nearest neighbour, on whole-image vectors.

scikit-learn's, behind the interface of the other baselines. With features="hog" the SVM is the classic of 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from ddlcn._validation import check_choice, check_number
from ddlcn.baselines.base import Labels, VectorBaseline

Array = NDArray[Any]


class VectorSVM(VectorBaseline):
    """A support vector machine: linear, one class against the rest; or Gaussian, one against one.

    Parameters
    ----------
    kernel : "linear" or "rbf"
        The width of the Gaussian is scikit-learn's "scale".
    C : float
    features, n_jobs, random_state
        See `VectorBaseline`.
    """

    def __init__(
        self,
        kernel: str = "linear",
        C: float = 1.0,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        check_choice("kernel", self.kernel, ("linear", "rbf"))
        C = check_number("C", self.C, above=True)
        # The primal where there are more images than dimensions: its time grows with the smaller of the two.
        linear = LinearSVC(C=C, dual=len(X) <= X.shape[1], random_state=int(self._spawn(2)[1].generate_state(1)[0]))
        self._machine = (linear if self.kernel == "linear" else SVC(C=C, kernel="rbf")).fit(X, y)

    def _decide(self, X: Array) -> Array:
        return np.asarray(self._machine.decision_function(X))


class NearestNeighbour(VectorBaseline):
    """The label of the training image whose vector, scaled to length one, is nearest."""

    def __init__(self, *, features: Any = "pixels", n_jobs: int | None = None, random_state: Any = None) -> None:
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        X = normalize(X)
        self._machines = [NearestNeighbors(n_neighbors=1).fit(X[y == c]) for c in range(len(self.classes_))]

    def _decide(self, X: Array) -> Array:
        X = normalize(X)
        return -np.column_stack([machine.kneighbors(X)[0][:, 0] for machine in self._machines])

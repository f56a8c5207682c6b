"""The simplest baselines: a support vector machine, and the nearest neighbour, on whole-image vectors.

scikit-learn's, with the interface of the other baselines. With features="hog" the SVM is that of Dalal & Triggs 2005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.svm import fit_dual
from ddlcn.utils.validation import check_choice, check_number

Array = NDArray[Any]

# The grid of C="auto".
C_VALUES, WIDTHS, N_FOLDS = (0.1, 1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0), 3


class VectorSVM(VectorBaseline):
    """A support vector machine: linear, one class against the rest; or Gaussian, one against one.

    Parameters
    ----------
    kernel : "linear" or "rbf"
        The width of the Gaussian is scikit-learn's "scale".
    C : float or "auto"
        "auto": chosen on three folds of the training images, with the width of the Gaussian; 1 where a class has a
        single image.
    features, n_jobs, random_state
        See `VectorBaseline`.
    """

    def __init__(
        self,
        kernel: str = "linear",
        C: Any = 1.0,
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
        auto = isinstance(self.C, str) and self.C == "auto"
        C = 1.0 if auto else check_number("C", self.C, above=True)
        seed = int(self._spawn(2)[1].generate_state(1)[0])
        # The primal where there are more images than dimensions: its time grows with the smaller of the two.
        linear = LinearSVC(C=C, dual=len(X) <= X.shape[1], random_state=seed)
        svm = linear if self.kernel == "linear" else SVC(C=C, kernel="rbf")
        if auto and np.bincount(y).min() > 1:
            svm.set_params(**choose(X, y, self.kernel, seed))
        self._svm = svm.fit(X, y)

    def _decide(self, X: Array) -> Array:
        return np.asarray(self._svm.decision_function(X))


def choose(X: Array, y: Labels, kernel: str, seed: int) -> dict[str, float]:
    """Return C, and gamma of the Gaussian, with the best mean over classes on folds; ties go to the first.

    From inner products alone, so that many candidates cost little more than one.
    """
    folds = StratifiedKFold(min(N_FOLDS, int(np.bincount(y).min())), shuffle=True, random_state=seed)
    splits = list(folds.split(X, y))
    products = X @ X.T
    squared_norms = np.diag(products)
    squares = np.maximum(squared_norms[:, None] + squared_norms - 2 * products, 0)
    n_classes, default_gamma = int(y.max()) + 1, 1 / (X.shape[1] * X.var())
    best: tuple[float, dict[str, float]] = (-1.0, {})
    for gamma in [default_gamma * factor for factor in WIDTHS] if kernel == "rbf" else [0.0]:
        gram = np.exp(-gamma * squares) if kernel == "rbf" else products
        for C in C_VALUES:
            rates = []
            for train, test in splits:
                inside, across = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
                if kernel == "rbf":
                    y_pred = SVC(C=C, kernel="precomputed").fit(inside, y[train]).predict(across)
                else:
                    dual = fit_dual(inside, y[train], n_classes, C, np.ones(n_classes), None)
                    scores = across @ dual + dual.sum(axis=0)
                    y_pred = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
                rates.append(balanced_accuracy_score(y[test], y_pred))
            if np.mean(rates) > best[0]:
                best = float(np.mean(rates)), {"C": C, **({"gamma": gamma} if kernel == "rbf" else {})}
    return best[1]


class NearestNeighbour(VectorBaseline):
    """The label of the training image whose vector, scaled to unit norm, is nearest."""

    def __init__(self, *, features: Any = "pixels", n_jobs: int | None = None, random_state: Any = None) -> None:
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        X = normalize(X)
        self._neighbours = [NearestNeighbors(n_neighbors=1).fit(X[y == c]) for c in range(len(self.classes_))]

    def _decide(self, X: Array) -> Array:
        X = normalize(X)
        return -np.column_stack([search.kneighbors(X)[0][:, 0] for search in self._neighbours])

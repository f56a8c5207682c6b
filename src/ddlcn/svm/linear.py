"""Image features in, the weights of a linear SVM out (docs/method.md, "Classifier").

One class against the rest, squared hinge, L2 penalty, the intercept penalised as one more weight (liblinear's model):

    min_{w, b}  1/2 (||w||^2 + b^2) + sum_i C_i max(0, 1 - y_i (w . f_i + b))^2

Two routes to the same weights, which agree to solver tolerance:

- images few, dimensions many: through the Gram matrix, by Newton's method on the set of margin violators;
- images many: liblinear's trust-region Newton method on the sparse features, one thread per class.

`svm.route` says where the switch lies. `svm="libsvm"` is the letter of the paper: hinge loss, one class against one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ddlcn.svm.gram import weights_from_dual
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# From this share of nonzeros on a dense product is quicker: 101 classes, 374,000 columns of which a fifth are nonzero,
# take 11 ms an image sparse and 2.3 ms dense, one thread. DENSE_ROWS images are made dense at a time. BLAS rounds a row
# differently in batches of different sizes, by 1e-7; with few columns, sparse and in double precision is quick enough.
DENSE_SHARE, DENSE_COLUMNS, DENSE_ROWS = 0.05, 10_000, 16


@dataclass(frozen=True)
class SVMConfig:
    """Which SVM: everything but the images."""

    n_classes: int
    C: float
    kind: str  # "liblinear" or "libsvm"
    weights: Array  # (n_classes,): factors on C per class (`class_weight`)


@dataclass(frozen=True)
class LinearSVM:
    """Weights `coef` (rows, columns) and `intercept` (rows,).

    One row per class (one for two classes); with `pairwise`, one per pair of classes (0, 1), (0, 2), ..., (1, 2), ...
    """

    coef: Array
    intercept: Array
    pairwise: bool
    n_classes: int

    def __post_init__(self) -> None:
        # All weights of a column side by side: a sparse feature times the weights would else copy them all, every time.
        object.__setattr__(self, "coef", np.asfortranarray(self.coef))

    def decide(self, features: Any) -> Array:
        """Decision values (n, classes), or (n,) for two classes.

        Pairwise: votes, with the sum of confidences to break ties, as scikit-learn's SVC does it.
        """
        raw = _multiply(features, self.coef) + self.intercept  # (n, rows)
        if self.n_classes == 2:
            # libsvm's pair (0, 1) is positive for class 0, everybody else's single row for class 1.
            return -raw[:, 0] if self.pairwise else raw[:, 0]
        if not self.pairwise:
            return raw
        votes, confidence = np.zeros((len(raw), self.n_classes)), np.zeros((len(raw), self.n_classes))
        for row, (a, b) in enumerate(zip(*np.triu_indices(self.n_classes, 1), strict=True)):
            votes[:, a] += raw[:, row] > 0
            votes[:, b] += raw[:, row] <= 0
            confidence[:, a] += raw[:, row]
            confidence[:, b] -= raw[:, row]
        return np.asarray(votes + confidence / (3.0 * (np.abs(confidence) + 1.0)))


def _multiply(features: Any, coef: Array) -> Array:
    """features coef^T (n, rows), of a csr_array (n, columns). Features that are hardly sparse are made dense first."""
    n, n_columns = features.shape
    if n_columns < DENSE_COLUMNS:
        return np.asarray(features.astype(np.float64) @ coef.T)
    if features.nnz < DENSE_SHARE * n * n_columns:
        return np.asarray(features @ coef.T)
    starts = range(0, n, DENSE_ROWS)
    return np.concatenate([features[start : start + DENSE_ROWS].toarray() @ coef.T for start in starts])


def fit_svm(
    features: Any,
    gram: Array | None,
    y: NDArray[np.intp],
    config: SVMConfig,
    n_jobs: int | None,
) -> LinearSVM:
    """Fit the SVM by the route that suits the size.

    Parameters
    ----------
    features : csr_array (n, columns)
    gram : ndarray (n, n) or None
        Their inner products, to go by the Gram matrix; None to go by liblinear.
    y : ndarray (n,)
        Class indices 0 .. n_classes - 1.
    config : SVMConfig
    """
    n_classes, C, weights = config.n_classes, config.C, config.weights
    if config.kind == "libsvm":
        return _fit_libsvm(features, y, n_classes, C, weights)
    if gram is not None:
        dual = fit_dual(gram, y, n_classes, C, weights, n_jobs)
        return LinearSVM(weights_from_dual(features, dual), dual.sum(axis=0), False, n_classes)
    return _fit_liblinear(features, y, n_classes, C, weights, n_jobs)


def fit_dual(
    gram: Array, y: NDArray[np.intp], n_classes: int, C: float, weights: Array, n_jobs: int | None
) -> NDArray[np.float64]:
    """The SVM in terms of the images: (n, rows), so that w = features^T dual and b = sum of dual, per row.

    Parameters
    ----------
    gram : ndarray (n, n)
    """
    signs, costs = one_against_rest(y, n_classes, C, weights)
    kernel = gram + 1.0  # the intercept is the weight of a feature that is always 1
    # With one C for all images the inverse below serves every class; each class then only removes its non-violators.
    shared = _Ridge(kernel, 0.5 / costs[0]) if np.all(costs == costs[0]) else None

    def solve(row: int) -> NDArray[np.float64]:
        return _solve_by_gram(kernel, signs[row], costs[row], shared)

    return np.column_stack(list(map_threads(solve, range(len(signs)), n_jobs)))


def one_against_rest(y: NDArray[np.intp], n_classes: int, C: float, weights: Array) -> tuple[Array, Array]:
    """Signs and costs (rows, n). liblinear's rule: a class's own weight on its images, none on the rest."""
    if n_classes == 2:
        return np.where(y == 1, 1.0, -1.0)[None], (C * weights[y])[None]
    rows = np.arange(n_classes)[:, None]
    return np.where(y == rows, 1.0, -1.0), np.where(y == rows, C * weights[rows], C)


class _Ridge:
    """(K + diag) restricted to any subset A of images, solved cheaply: directly, or by what is missing from A.

    With R = (K + diag)^-1 of all images, forcing the images outside A to zero only needs R among those outside, so a
    solve costs min(|A|, n - |A|)^3 / 3.
    """

    def __init__(self, kernel: Array, diagonal: Array, with_inverse: bool = True) -> None:
        self._system = kernel + np.diag(diagonal)
        self._inverse = linalg.inv(self._system) if with_inverse else None

    def solve(self, inside: NDArray[np.bool_], target: Array) -> Array:
        """beta (n,): (K + diag)_AA beta_A = target_A, and 0 outside A."""
        beta = np.zeros(len(target))
        outside = ~inside
        if self._inverse is None or 2 * outside.sum() > len(target):
            system = self._system[np.ix_(inside, inside)]
            beta[inside] = _solve_positive(system, target[inside])
            return beta
        beta = np.asarray(self._inverse @ np.where(inside, target, 0.0))
        if outside.any():
            among = self._inverse[np.ix_(outside, outside)]
            force = _solve_positive(among, beta[outside])
            beta -= self._inverse[:, outside] @ force
            beta[outside] = 0.0
        return beta


def _solve_positive(system: Array, target: Array) -> Array:
    """Cholesky, without the estimate of the condition that scipy's `solve` spends as much again on: the diagonal bounds
    it."""
    factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(linalg.cho_solve(factor, target, check_finite=False))


def _solve_by_gram(kernel: Array, y: Array, cost: Array, shared: _Ridge | None) -> NDArray[np.float64]:
    """Newton's method for one class: exact once the set of margin violators repeats.

    At the optimum beta_i = 2 C_i y_i max(0, 1 - y_i f_i), so on the violators (K + 1 / 2C) beta = y. Each step solves
    that for the present violators and searches the line to it exactly, so it ends (Keerthi and DeCoste 2005).
    """
    ridge = shared or _Ridge(kernel, 0.5 / cost, with_inverse=False)
    violators = np.ones(len(y), bool)
    beta = ridge.solve(violators, y)
    f = kernel @ beta
    for _ in range(100):  # about 5 to 10 in practice
        violators, before = y * f < 1.0, violators
        if np.array_equal(violators, before):
            break
        target = ridge.solve(violators, y)
        f_target = kernel @ target
        step = _search_line(beta, target - beta, f, f_target - f, y, cost)
        beta = beta + step * (target - beta)
        f = f + step * (f_target - f)
    return np.asarray(beta)


def _search_line(beta: Array, d_beta: Array, f: Array, d_f: Array, y: Array, cost: Array) -> float:
    """The step t >= 0 that minimises the primal objective along the line; its derivative is piecewise linear.

    1/2 ||w||^2 = 1/2 beta . f, so its derivative at t is d_beta . (f + t d_f).
    """
    margin, slope = 1.0 - y * f, -y * d_f  # the loss of image i at t is C max(0, margin + t slope)^2
    at_zero = np.flatnonzero(slope)
    crossings = -margin[at_zero] / slope[at_zero]
    order = at_zero[np.argsort(crossings)]
    crossings = np.sort(crossings)
    keep = crossings > 0.0
    order, crossings = order[keep], crossings[keep]
    active = (margin > 0.0) | ((margin == 0.0) & (slope > 0.0))
    # derivative(t) = constant + t * rate, until the next crossing changes one image's part
    constant = float(d_beta @ f + 2.0 * (cost * margin * slope)[active].sum())
    rate = float(d_beta @ d_f + 2.0 * (cost * slope * slope)[active].sum())
    enters = np.where(slope[order] > 0.0, 1.0, -1.0)
    constants = constant + np.concatenate([[0.0], np.cumsum(enters * 2.0 * (cost * margin * slope)[order])])
    rates = rate + np.concatenate([[0.0], np.cumsum(enters * 2.0 * (cost * slope * slope)[order])])
    ends = np.concatenate([crossings, [np.inf]])
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.where(rates > 0.0, -constants / rates, np.inf)
    segment = int(np.argmax(roots <= ends))
    return float(max(roots[segment], 0.0))


def _fit_liblinear(
    features: Any, y: NDArray[np.intp], n_classes: int, C: float, weights: Array, n_jobs: int | None
) -> LinearSVM:
    from sklearn.svm import LinearSVC

    features = features.astype(np.float64)  # liblinear's own number: one copy for all classes, instead of one for each

    def fit_row(row: int) -> tuple[Array, float]:
        own = 1 if n_classes == 2 else row
        class_weight = {1: weights[own], -1: weights[1 - own] if n_classes == 2 else 1.0}
        # dual=False: Newton's method, which draws no random numbers, so threads do not change the result.
        model = LinearSVC(C=C, dual=False, tol=1e-4, class_weight=class_weight, max_iter=1000)
        model.fit(features, np.where(y == own, 1, -1))
        return model.coef_[0], float(model.intercept_[0])

    rows = range(1 if n_classes == 2 else n_classes)
    coef, intercept = zip(*map_threads(fit_row, rows, n_jobs), strict=True)
    return LinearSVM(np.stack(coef), np.array(intercept), False, n_classes)


def fit_pairs(gram: Array, y: NDArray[np.intp], C: float, weights: Array) -> Any:
    """libsvm, one class against one, on a Gram matrix (n, n): a fitted scikit-learn SVC."""
    from sklearn.svm import SVC

    return SVC(C=C, kernel="precomputed", class_weight=dict(enumerate(weights))).fit(gram, y)


def _fit_libsvm(features: Any, y: NDArray[np.intp], n_classes: int, C: float, weights: Array) -> LinearSVM:
    from sklearn.svm import SVC

    model = SVC(C=C, kernel="linear", class_weight=dict(enumerate(weights)), decision_function_shape="ovo")
    model.fit(features, y)
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    sign = -1.0 if n_classes == 2 else 1.0  # scikit-learn turns the sign of the two-class case round
    return LinearSVM(sign * np.asarray(coef), sign * np.asarray(model.intercept_), True, n_classes)

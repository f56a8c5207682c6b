"""An analysis dictionary and its classifier learned together: ADDL (Zhang, Jiang, Qin, Zhang, Li, Zhang, Yan 2018).

Vectors x (m,) of unit norm and labels in, scores (x P^T) W^T out. Class c has a synthesis dictionary D_c (k, m), codes
S_c (n_c, k) of its images X_c (n_c, m), and an analysis dictionary P_c (k, m) that gives the codes without solving
anything. P (K, m) is that of all classes, W (n_classes, K) the classifier on the codes X P^T, H (n, n_classes) are
one-hot labels:

    min  sum_c  ||X_c - S_c D_c||^2 + tau ||X_c P_c^T - S_c||^2 + alpha sum_j ||column j of S_c||
                + incoherence ||X_other P_c^T||^2
         + beta ||H - X P^T W^T||^2 + ridge (||P||^2 + ||W||^2),          rows of D_c of norm at most one

S, D, P and W are updated in turn, class by class, each in closed form (the atoms of D one by one); none raises the
objective.

From the paper's abstract: the terms, the l2,1 norm, and that the classifier sees the codes that P makes. We did not
have its formulas: the incoherence is that of dictionary pairs (Gu et al. 2014); start, solver and weights are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels
from ddlcn.baselines.class_dictionaries import ClassDictionaries, start_dictionary, step_atoms
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]
# Norms of columns of S below this are smoothed: the weight alpha / (2 norm) stays finite.
SMOOTH = 1e-6


@dataclass(frozen=True)
class Weights:
    """Weights of the objective."""

    tau: float
    alpha: float
    incoherence: float
    beta: float
    ridge: float


class Problem:
    """Images X (n, m), their classes y (n,), and the objective.

    It is kept in the coordinates of the principal axes of X, where X^T X is diagonal (`scale`): they change nothing,
    and an update of P_c then costs a system of as many equations as class c has images.

    Attributes
    ----------
    axes : ndarray (m, r)
    X : ndarray (n, r)
    """

    def __init__(self, X: Array, y: Labels, n_classes: int, weights: Weights) -> None:
        _, s, vt = np.linalg.svd(X, full_matrices=False)
        kept = s > 1e-10 * max(float(s[0]), 1e-300)
        self.axes, self.scale = vt[kept].T, s[kept] ** 2
        self.X, self.H, self.weights = X @ self.axes, np.eye(n_classes)[y], weights
        self._sums = self.H.T @ self.X  # (n_classes, r)
        self.rows = [np.flatnonzero(y == c) for c in range(n_classes)]

    def code(self, c: int, D: Array, P: Array, S: Array) -> Array:
        """S_c (n_c, k) for D_c, P_c (k, r): the l2,1 norm replaced by squares that touch it at S."""
        w, X = self.weights, self.X[self.rows[c]]
        system = D @ D.T + w.tau * np.eye(len(D)) + np.diag(w.alpha / (2 * smooth_norms(S)))
        return np.asarray(linalg.solve(system, (X @ (D + w.tau * P).T).T, assume_a="pos").T)

    def step_synthesis(self, c: int, D: Array, S: Array) -> Array:
        """D_c (k, r) for codes S_c (n_c, k)."""
        return step_atoms(D, S.T @ S, S.T @ self.X[self.rows[c]], np.zeros(len(D), np.intp))

    def solve_analysis(self, c: int, own: slice, P: Array, W: Array, S: Array) -> Array:
        """P_c (k, r), the minimum for codes S_c (n_c, k) and the P of the other classes; `own` are its rows in P."""
        w, X, W_c = self.weights, self.X[self.rows[c]], W[:, own]
        overlap = W_c.T @ W  # (k, K)
        values, vectors = np.linalg.eigh(overlap[:, own])
        missing = W_c.T @ self._sums - (overlap @ P - overlap[:, own] @ P[own]) * self.scale  # of the labels
        target = vectors.T @ (w.tau * S.T @ X + w.beta * missing)
        # Row i of vectors^T P_c solves (diagonal_i + more X_c^T X_c) p = target_i, by Woodbury's identity.
        diagonal = (w.incoherence + w.beta * values[:, None]) * self.scale + w.ridge  # (k, r)
        more, rows = w.tau - w.incoherence, target / diagonal
        for i in range(len(rows) if more else 0):
            spread = X / diagonal[i]
            inner = np.eye(len(X)) + more * spread @ X.T
            rows[i] -= more * spread.T @ linalg.solve(inner, X @ rows[i])
        return np.asarray(vectors @ rows)

    def solve_classifier(self, P: Array) -> Array:
        """W (n_classes, K) for P (K, r)."""
        w, codes = self.weights, self.X @ P.T
        system = w.beta * codes.T @ codes + w.ridge * np.eye(len(P))
        return np.asarray(linalg.solve(system, w.beta * codes.T @ self.H, assume_a="pos").T)

    def measure(self, D: list[Array], P: Array, W: Array, S: list[Array]) -> float:
        """The objective; norms of columns are smoothed."""
        w, codes = self.weights, self.X @ P.T
        total = w.beta * ((self.H - codes @ W.T) ** 2).sum() + w.ridge * ((P**2).sum() + (W**2).sum())
        for rows, own, D_c, S_c in zip(self.rows, cut(D), D, S, strict=True):
            total += ((self.X[rows] - S_c @ D_c) ** 2).sum() + w.alpha * smooth_norms(S_c).sum()
            total += w.tau * ((codes[rows, own] - S_c) ** 2).sum()
            total += w.incoherence * ((codes[:, own] ** 2).sum() - (codes[rows, own] ** 2).sum())
        return float(total)


def smooth_norms(S: Array) -> Array:
    """Norms of the columns of S (n, k), rounded at zero: (k,)."""
    return np.asarray(np.sqrt((S**2).sum(axis=0) + SMOOTH**2))


def cut(D: list[Array]) -> list[slice]:
    """Where the atoms of each class lie when those of all classes are stacked."""
    ends = np.cumsum([len(D_c) for D_c in D]).tolist()
    return [slice(end - len(D_c), end) for end, D_c in zip(ends, D, strict=True)]


def learn_pairs(problem: Problem, D: list[Array], n_iter: int) -> tuple[list[Array], Array, Array, Array]:
    """D, P (K, r), W (n_classes, K) and the objective after each iteration (n_iter,), from a start D."""
    S = [problem.X[rows] @ D_c.T for rows, D_c in zip(problem.rows, D, strict=True)]
    parts = cut(D)
    P, W = np.zeros((parts[-1].stop, problem.X.shape[1])), np.zeros((len(D), parts[-1].stop))
    objective = []
    for _ in range(n_iter):
        for c, own in enumerate(parts):
            P[own] = problem.solve_analysis(c, own, P, W, S[c])
        W = problem.solve_classifier(P)
        for c, own in enumerate(parts):
            S[c] = problem.code(c, D[c], P[own], S[c])
            D[c] = problem.step_synthesis(c, D[c], S[c])
        objective.append(problem.measure(D, P, W, S))
    return D, P, W, np.array(objective)


class ADDL(ClassDictionaries):
    """Analysis discriminative dictionary learning: codes by one matrix product, and a linear classifier of them.

    Parameters
    ----------
    atoms_per_class : int
        At most the training images of the class. Published for AR: 5.
    tau : float
        Weight of the codes' approximation.
    alpha : float
        Weight of the l2,1 norm of the codes.
    incoherence : float
        Weight of what the analysis atoms of a class give on images of other classes.
    beta : float
        Weight of the labels.
    ridge : float
        Times the mean number of training images of a class. Our setting, as the other weights, from one fold of
        training images of Extended Yale B and of AR (228 and 400): 96.1 and 97.8 %. A tenth of it has 94.3 and 97.0,
        three times as much 93.0 and 96.8. Ten times more or less of tau, alpha and incoherence changes neither: on
        these faces the classifier's term alone decides. A tenth of beta has 84.7 and 85.8.
    max_iter : int
    features, n_jobs, random_state
        See `VectorBaseline`. Nothing else here is random.

    Attributes
    ----------
    synthesis_, analysis_ : ndarrays (K, m)
        D and P, those of class 0 first.
    coef_ : ndarray (n_classes, K)
        W.
    objective_ : ndarray (max_iter,)
    n_iter_ : int
    """

    def __init__(
        self,
        atoms_per_class: int = 15,
        tau: float = 1.0,
        alpha: float = 0.01,
        *,
        incoherence: float = 0.01,
        beta: float = 1.0,
        ridge: float = 0.01,
        max_iter: int = 10,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.atoms_per_class = atoms_per_class
        self.tau = tau
        self.alpha = alpha
        self.incoherence = incoherence
        self.beta = beta
        self.ridge = ridge
        self.max_iter = max_iter
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        n_classes = len(self.classes_)
        weights = Weights(
            check_number("tau", self.tau, above=True),
            check_number("alpha", self.alpha),
            check_number("incoherence", self.incoherence),
            check_number("beta", self.beta, above=True),
            check_number("ridge", self.ridge, above=True) * len(y) / n_classes,
        )
        X = normalize(X)
        start, labels = start_dictionary(X, y, check_count("atoms_per_class", self.atoms_per_class), 0)
        problem = Problem(X, y, n_classes, weights)
        D, P, W, self.objective_ = learn_pairs(
            problem,
            [start[labels == c] @ problem.axes for c in range(n_classes)],
            check_count("max_iter", self.max_iter),
        )
        self.n_iter_ = len(self.objective_)
        self.synthesis_, self.analysis_, self.coef_ = np.concatenate(D) @ problem.axes.T, P @ problem.axes.T, W

    def _decide(self, X: Array) -> Array:
        """Scores (n, n_classes) of images X (n, m)."""
        return np.asarray(normalize(X) @ self.analysis_.T @ self.coef_.T)

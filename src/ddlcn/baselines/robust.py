"""Regularised robust coding: RRC with an l1 penalty (Yang, Zhang, Yang and Zhang, TIP 2013).

An image x (m,) is coded over all training images A (n, m), rows of unit norm, and outlier pixels (shadows,
highlights, scarves) are down-weighted. The code and the weights are updated in turn:

    z = argmin ||((x - z A) sqrt(w)) P^T||^2 + alpha ||z||_1
    w_i = 1 / (1 + exp(mu (e_i^2 - delta))),    e = x - z A,    delta = tau-quantile of e^2,    mu = steepness / delta

P (p, m) holds principal components of the training images, the paper's eigenfaces; without them P is the identity. The
weights belong to pixels, so they are applied before the projection, as in the authors' code for RSC, the method's
earlier version (CVPR 2011). The class c with the smallest residual, ||((x - z_c A_c) sqrt(w)) P^T||, is predicted.

In: vectors, one per image. Out: decisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import Tags

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.baselines.components import find_components
from ddlcn.coding.lasso import LassoCoder
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]

# Bounds on the duality gap of a code, relative to the objective at z = 0, and on the violation of its optimality
# conditions outside the working set, relative to the penalty's slope.
GAP, VIOLATION = 1e-7, 1e-4
# Atoms that enter the working set at once: the codes of faces have 50 to 150 nonzeros.
N_ENTER = 24


def code_weighted(x: Array, A: Array, w: Array, P: Array | None, alpha: float, inside: Array) -> Array:
    """argmin_z ||((x - z A) sqrt(w)) P^T||^2 + alpha ||z||_1 (n,).

    Only a working set of atoms is weighted and projected, initially `inside` (k,); the others are checked by one
    product with A.
    """
    root, slope = np.sqrt(w), 0.5 * alpha

    def project(rows: Array) -> Array:
        return rows * root if P is None else (rows * root) @ P.T

    target = project(x[None])  # (1, p)
    B, codes = project(A[inside]), np.zeros((1, len(inside)))  # (k, p), (1, k)
    while True:
        if len(inside):
            codes = LassoCoder(B, slope, GAP).encode_dense(target)[0]
        residual = (target - codes @ B)[0]
        g = np.abs(A @ (root * (residual if P is None else residual @ P)))  # (n,)
        g[inside] = 0.0
        violators = np.flatnonzero(g > slope * (1.0 + VIOLATION))
        if len(violators) == 0:
            break
        new = violators[np.argsort(-g[violators], kind="stable")[:N_ENTER]]
        inside, B = np.concatenate([inside, new]), np.concatenate([B, project(A[new])])
    z = np.zeros(len(A))
    z[inside] = codes[0]
    return z


def weigh_residuals(e: Array, tau: float, steepness: float) -> Array:
    """Weights (m,) in [0, 1] of residuals e (m,): logistic in their squares, one half at the tau-quantile."""
    squares = e * e
    delta = np.partition(squares, int(tau * (len(e) - 1)))[int(tau * (len(e) - 1))]
    if delta <= np.finfo(float).tiny:  # a fraction tau of the pixels is fitted exactly: no outliers
        return np.ones(len(e))
    w: Array = 1.0 / (1.0 + np.exp(np.minimum(steepness * (squares / delta - 1.0), 500.0)))
    return w


class RRC_L1(VectorBaseline):
    """Regularised robust coding with an l1 penalty.

    Parameters
    ----------
    alpha : float
        Weight of the penalty; the published value, for images of unit norm.
    tau : float
        Share of the pixels with a weight above one half: 0.8 in the authors' code for unoccluded faces, less for
        occluded ones.
    steepness : float
        mu times delta: how sharply weights fall beyond the quantile; 8 in the authors' code.
    n_components : int or None
        Principal components that weighted images are projected to (no more than there are): 300 in the paper's tables
        for faces. None means none.
    n_reweightings : int
        Most reweightings. The authors' code has 2 for unoccluded faces and 10 for occluded ones. (100 faces of
        Extended Yale B: 99 right with 2, 97 with 10.)
    tol : float
        The weights have converged when they change by less than this part of their norm.
    features, n_jobs, random_state
        See `VectorBaseline`. Weights are for raw pixels. Of 400 test faces of Extended Yale B 399 are right by
        54 x 48 grey values (with `n_components=300` or without), and 386 if each face's mean is removed first; of 100,
        96 with `features="eigen"`, as many as without weights.

    Attributes
    ----------
    dictionary_ : ndarray (n, m)
        The training images, of unit norm.
    """

    def __init__(
        self,
        alpha: float = 0.001,
        *,
        tau: float = 0.8,
        steepness: float = 8.0,
        n_components: int | None = None,
        n_reweightings: int = 2,
        tol: float = 0.05,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.tau = tau
        self.steepness = steepness
        self.n_components = n_components
        self.n_reweightings = n_reweightings
        self.tol = tol
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        check_number("alpha", self.alpha, above=True)
        if check_number("tau", self.tau) > 1.0:
            raise ValueError(f"tau must be a share, at most 1; got {self.tau!r}")
        check_number("steepness", self.steepness, above=True)
        check_count("n_reweightings", self.n_reweightings)
        check_number("tol", self.tol)
        self.dictionary_, self._y = normalize(X), y
        self._P = None if self.n_components is None else find_components(X, self.n_components)[1]

    def _decide(self, X: Array) -> Array:
        return -np.stack(list(map_threads(self._measure_residuals, normalize(X), self.n_jobs)))

    def _measure_residuals(self, x: Array) -> Array:
        """The residual of x (m,) for every class: (n_classes,)."""
        A, P = self.dictionary_, self._P
        z = np.zeros(len(A))
        w = weigh_residuals(x - A.mean(axis=0), self.tau, self.steepness)  # initial reconstruction: the mean image
        # Differs from the paper: full steps only; the paper halves a step that would raise its objective.
        for step in range(self.n_reweightings):
            if step > 0:
                before, w = w, weigh_residuals(x - z @ A, self.tau, self.steepness)
                if np.linalg.norm(w - before) <= self.tol * np.linalg.norm(before):
                    break
            z = code_weighted(x, A, w, P, self.alpha, np.flatnonzero(z))
        used = np.flatnonzero(z)
        parts = np.zeros((len(self.classes_), len(x)))
        np.add.at(parts, self._y[used], z[used, None] * A[used])
        residual = (x - parts) * np.sqrt(w)
        return np.asarray(np.linalg.norm(residual if P is None else residual @ P.T, axis=1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The two-dimensional data of scikit-learn's checks, scaled to unit norm, have overlapping classes.
        tags.classifier_tags.poor_score = True
        return tags

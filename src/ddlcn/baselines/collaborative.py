"""Training images as the dictionary: SRC (Wright et al. 2009) and CRC (Zhang et al. 2011).

An image x is coded over all training images A (n, m), rows of unit norm; the class with the smallest residual, using
its own part of the code, is predicted.

    SRC   min_z 1/2 ||x - z A||^2 + alpha ||z||_1          class c: ||x - z_c A_c||
    CRC   min_z ||x - z A||^2 + alpha ||z||^2               class c: ||x - z_c A_c|| / ||z_c||
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.preprocessing import normalize
from sklearn.utils import Tags

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.coding.lasso import LassoCoder
from ddlcn.coding.omp import encode_omp
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count, check_number

Array = NDArray[Any]
# Images coded at a time: enough for a matrix product, few enough to divide a small folder among threads.
N_AT_ONCE = 64


class SRC(VectorBaseline):
    """Sparse representation-based classification: the lasso on all training images, solved to a duality gap.

    Parameters
    ----------
    alpha : float
        Weight of the l1 norm, for images of unit norm. On folds of training faces (Extended Yale B) 0.01 recognises
        94.2 %, 0.005 and 0.003 96.2, 0.001 96.5 in six times the time.
    atoms_per_class : int, optional
        Number of training images of every class to use, drawn at random; None means all.
    coding : "lasso" or "omp"
        How an image is coded: with the l1 norm, as published; or by orthogonal matching pursuit, as in some
        implementations, which is faster and not optimal.
    n_nonzero : int, optional
        Entries of a code by pursuit; None means a tenth of the dimensions.
    tol : float
        Bound on the relative duality gap of every code by the lasso.
    features, n_jobs, random_state
        See `VectorBaseline`.
    """

    def __init__(
        self,
        alpha: float = 0.005,
        atoms_per_class: int | None = None,
        *,
        coding: str = "lasso",
        n_nonzero: int | None = None,
        tol: float = 1e-4,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.atoms_per_class = atoms_per_class
        self.coding = coding
        self.n_nonzero = n_nonzero
        self.tol = tol
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        alpha, tol = check_number("alpha", self.alpha, above=True), check_number("tol", self.tol, above=True)
        check_choice("coding", self.coding, ("lasso", "omp"))
        if self.atoms_per_class is not None:
            n_each = check_count("atoms_per_class", self.atoms_per_class)
            order = np.random.default_rng(self._spawn(2)[1]).permutation(len(X))
            kept = np.sort(np.concatenate([order[y[order] == c][:n_each] for c in range(len(self.classes_))]))
            X, y = X[kept], y[kept]
        self.dictionary_, self.atom_labels_ = normalize(X), y
        self._coder = LassoCoder(self.dictionary_, alpha, tol)

    def _decide(self, X: Array) -> Array:
        def decide(start: int) -> Array:
            part = X[start : start + N_AT_ONCE]
            if self.coding == "omp":
                n_nonzero = max(1, X.shape[1] // 10) if self.n_nonzero is None else self.n_nonzero
                codes = encode_omp(part, self.dictionary_, n_nonzero, n_jobs=1, gram=self._coder.gram).toarray()
            else:
                codes, _ = self._coder.encode_dense(part)
            return -measure_residuals(part, codes, self.dictionary_, self.atom_labels_, len(self.classes_))

        X = normalize(X)
        return np.concatenate(list(map_threads(decide, range(0, len(X), N_AT_ONCE), self.n_jobs)))


class CRC(VectorBaseline):
    """Collaborative representation: ridge regression on all training images.

    Parameters
    ----------
    alpha : float
        Times n / 700, for n training images of unit norm, as published.
    features, n_jobs, random_state
        See `VectorBaseline`.
    """

    def __init__(
        self, alpha: float = 0.001, *, features: Any = "pixels", n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.alpha = alpha
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        alpha = check_number("alpha", self.alpha, above=True)
        self.dictionary_, self.atom_labels_ = normalize(X), y
        gram = self.dictionary_ @ self.dictionary_.T
        gram[np.diag_indices(len(X))] += alpha * len(X) / 700
        self._to_codes = linalg.solve(gram, self.dictionary_, assume_a="pos").T  # (m, n)

    def _decide(self, X: Array) -> Array:
        X = normalize(X)
        codes = X @ self._to_codes
        return -measure_residuals(X, codes, self.dictionary_, self.atom_labels_, len(self.classes_), relative=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # A class with more images than dimensions spans the whole space, so every residual is zero: so are the
        # two-dimensional data of scikit-learn's checks.
        tags.classifier_tags.poor_score = True
        return tags


def measure_residuals(X: Array, codes: Array, A: Array, y: Labels, n_classes: int, relative: bool = False) -> Array:
    """||x - z_c A_c|| for every row x of X and every class c: (n, n_classes); `relative`: divided by ||z_c||."""
    out = np.empty((len(X), n_classes))
    for c in range(n_classes):
        z_c = codes[:, y == c]
        out[:, c] = np.linalg.norm(X - z_c @ A[y == c], axis=1)
        if relative:
            out[:, c] /= np.maximum(np.linalg.norm(z_c, axis=1), 1e-12)
    return out

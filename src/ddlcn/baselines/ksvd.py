"""Dictionaries learned by K-SVD, and a linear classifier on the codes.

    KSVD      min ||X - Z D||^2                                             Aharon et al. 2006
    DKSVD     min ||X - Z D||^2 + beta ||H - Z W^T||^2                      Zhang & Li 2010
    LCKSVD1   min ||X - Z D||^2 + alpha ||Q - Z A^T||^2                     Jiang et al. 2011, 2013
    LCKSVD2   min ||X - Z D||^2 + alpha ||Q - Z A^T||^2 + beta ||H - Z W^T||^2

all subject to at most `n_nonzero` entries per row of Z. H (n, n_classes) are one-hot labels; Q (n, atoms) is one where
image and atom have the same class. All start from a dictionary that K-SVD learned class by class, and from W and A by
ridge regression on its codes. KSVD and LCKSVD1 find W by ridge regression afterwards. An image x is coded over D by
orthogonal matching pursuit; the class with the largest entry of z W^T is predicted.

A is never formed: Q = H B, where B (n_classes, atoms) holds the class of each atom, so that by induction A = W B
from its start through every update, and alpha ||Q - Z A^T||^2 = sum_c alpha p_c ||h_c - Z w_c^T||^2 with p_c atoms in
class c (Kviatkovsky et al. 2017). So K-SVD of rows [x, sqrt(alpha p_c + beta) h] gives the same atoms as the
published algorithm, in half the time.

Images have unit norm here. The papers do not state this for theirs, and public scripts for their random faces multiply
grey values 0 .. 255 by the random matrix without normalising. So the published numbers are read as weights for that
scale: `alpha`, `beta` and `ridge` are those numbers, and are divided by `SCALE`. Labels then have so little weight that
the four methods differ by less than a point on Extended Yale B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.baselines.ksvd_learning import fit_ridge, learn_ksvd, learn_with_labels, start_by_class
from ddlcn.coding.omp import encode_omp
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]
# Mean squared norm of 504-dimensional random faces of Extended Yale B from grey values 0 .. 255, as measured. (With
# images of unit norm and the published weights unscaled, labels dominate the codes of training images, and test images
# have no labels: 39 % on Extended Yale B for LCKSVD2, instead of 94 %.)
SCALE = 4.4e6


class KSVD(VectorBaseline):
    """K-SVD of all training images, then ridge regression of the labels on the codes.

    Parameters
    ----------
    atoms_per_class : int
        At most the training images of the class. Published for LC-KSVD: 15 on Extended Yale B, 5 on AR.
    n_nonzero : int
        Entries of a code; published: 30.
    ridge : float
        Published: 1.
    max_iter, init_iter : int
        Iterations over all images, and before that within each class; published: 50 and 20.
    features, n_jobs, random_state
        See `VectorBaseline`.

    Attributes
    ----------
    dictionary_ : ndarray (atoms, m)
    atom_labels_ : ndarray (atoms,)
        The index of each atom's class.
    coef_ : ndarray (n_classes, atoms)
        W.
    objective_ : list of float
        One number per iteration.
    n_iter_ : int
    """

    _keeps_W = False  # whether W is the one learned with the dictionary

    def __init__(
        self,
        atoms_per_class: int = 15,
        n_nonzero: int = 30,
        ridge: float = 1.0,
        max_iter: int = 50,
        init_iter: int = 20,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.atoms_per_class = atoms_per_class
        self.n_nonzero = n_nonzero
        self.ridge = ridge
        self.max_iter = max_iter
        self.init_iter = init_iter
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _weigh(self, p: Array) -> Array | None:
        """Weights (n_classes,) of the labels in the learning, for p (n_classes,) atoms per class; None: not used."""
        return None

    def _learn(self, X: Array, y: Labels) -> None:
        n_nonzero, n_iter = check_count("n_nonzero", self.n_nonzero), check_count("max_iter", self.max_iter)
        ridge = check_number("ridge", self.ridge, above=True) / SCALE
        n_classes = len(self.classes_)
        X = normalize(X)
        D, self.atom_labels_ = start_by_class(
            X,
            y,
            check_count("atoms_per_class", self.atoms_per_class),
            n_nonzero,
            check_count("init_iter", self.init_iter, minimum=0),
            self._spawn(1 + n_classes)[1:],
            self.n_jobs,
        )
        targets = np.eye(n_classes)[y]
        weights = self._weigh(np.bincount(self.atom_labels_, minlength=n_classes))
        if weights is None:
            D, self.objective_ = learn_ksvd(X, D, n_nonzero, n_iter, self.n_jobs)
        else:
            D, W, self.objective_ = learn_with_labels(
                X, D, targets, weights / SCALE, n_nonzero, ridge, n_iter, self.n_jobs
            )
        self.dictionary_, self._gram, self.n_iter_ = D, D @ D.T, n_iter
        self.coef_ = W if self._keeps_W else fit_ridge(self._encode(X), targets, ridge)

    def _encode(self, X: Array) -> Any:
        return encode_omp(X, self.dictionary_, self.n_nonzero, n_jobs=self.n_jobs, gram=self._gram)

    def _decide(self, X: Array) -> Array:
        scores: Array = self._encode(normalize(X)) @ self.coef_.T
        return scores


class DKSVD(KSVD):
    """Discriminative K-SVD: dictionary and classifier learned together.

    Parameters
    ----------
    atoms_per_class, n_nonzero
        See `KSVD`.
    beta : float
        Weight of the labels; published for LC-KSVD: 4.
    ridge, max_iter, init_iter, features, n_jobs, random_state
        See `KSVD`; `ridge` is for the start of the classifier.
    """

    _keeps_W = True

    def __init__(
        self,
        atoms_per_class: int = 15,
        n_nonzero: int = 30,
        beta: float = 4.0,
        ridge: float = 1.0,
        max_iter: int = 50,
        init_iter: int = 20,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            atoms_per_class,
            n_nonzero,
            ridge,
            max_iter,
            init_iter,
            features=features,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.beta = beta

    def _weigh(self, p: Array) -> Array:
        return np.full(len(p), check_number("beta", self.beta, above=True))


class LCKSVD1(KSVD):
    """Label-consistent K-SVD, first form: each atom is drawn to its class; the classifier is fitted afterwards.

    Parameters
    ----------
    atoms_per_class, n_nonzero
        See `KSVD`.
    alpha : float
        Weight of label consistency; published: 16.
    ridge, max_iter, init_iter, features, n_jobs, random_state
        See `KSVD`.
    """

    def __init__(
        self,
        atoms_per_class: int = 15,
        n_nonzero: int = 30,
        alpha: float = 16.0,
        ridge: float = 1.0,
        max_iter: int = 50,
        init_iter: int = 20,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            atoms_per_class,
            n_nonzero,
            ridge,
            max_iter,
            init_iter,
            features=features,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.alpha = alpha

    def _weigh(self, p: Array) -> Array:
        return check_number("alpha", self.alpha, above=True) * p


class LCKSVD2(KSVD):
    """Label-consistent K-SVD, second form: dictionary, label consistency and classifier learned together.

    Parameters
    ----------
    atoms_per_class, n_nonzero
        See `KSVD`.
    alpha, beta : float
        Weights of label consistency and of the labels; published: 16 and 4.
    ridge, max_iter, init_iter, features, n_jobs, random_state
        See `KSVD`; `ridge` is for the start of the classifier.
    """

    _keeps_W = True

    def __init__(
        self,
        atoms_per_class: int = 15,
        n_nonzero: int = 30,
        alpha: float = 16.0,
        beta: float = 4.0,
        ridge: float = 1.0,
        max_iter: int = 50,
        init_iter: int = 20,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            atoms_per_class,
            n_nonzero,
            ridge,
            max_iter,
            init_iter,
            features=features,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.alpha = alpha
        self.beta = beta

    def _weigh(self, p: Array) -> Array:
        return check_number("alpha", self.alpha, above=True) * p + check_number("beta", self.beta)

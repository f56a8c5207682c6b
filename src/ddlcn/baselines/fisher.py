"""Dictionaries with discriminative codes: FDDL (Yang et al. 2011, 2014) and LRSDL (Vu & Monga 2016, 2017).

Each class c has a dictionary D_c that should reconstruct its own images and no others, and its codes should lie close
together and far from those of other classes; LRSDL also has a dictionary D_0 of low rank for what all images have in
common. In: X (n, m), rows of unit norm, and classes y (n,). With X' = X - Z_0 D_0, Z_c^j the codes of
class c's images over D_j, m_c and m the means of the codes of class c and of all, m_0 that of Z_0:

    1/2 ||X' - Z D||^2 + 1/2 sum_c (||X'_c - Z_c^c D_c||^2 + sum_{j != c} ||Z_c^j D_j||^2)           fidelity
    + lambda1 (||Z||_1 + ||Z_0||_1) + eta ||D_0||_*
    + lambda2 / 2 (||Z||^2 + sum_c sum_{z of c} (||z - m_c||^2 - ||m_c - m||^2) + sum ||z_0 - m_0||^2)  Fisher

over Z, Z_0 and atoms of norm at most one; FDDL is the case without D_0. An image is then coded over all atoms,
1/2 ||x - z D - z_0 D_0||^2 + gamma (||z||_1 + ||z_0||_1) + lambda2 / 2 ||z_0 - m_0||^2, and the class with the smallest
||x - z_0 D_0 - z_c D_c||^2 + weight ||z - m_c||^2 is predicted (the papers' global classifier).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels
from ddlcn.baselines.class_dictionaries import (
    SHARED,
    ClassDictionaries,
    alternate,
    code_classes,
    code_images,
    own_atoms,
    same_class,
    start_dictionary,
    step_atoms,
    step_low_rank,
)
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]


def average_classes(Z: Array, y: Labels) -> Array:
    """Means (n_classes, K) of the codes Z (n, K) of each class."""
    return np.stack([Z[y == c].mean(axis=0) for c in range(int(y.max()) + 1)])


def fisher_term(Z: Array, y: Labels) -> float:
    """||Z||^2 + within-class scatter - between-class scatter of codes Z (n, K); never negative."""
    means = average_classes(Z, y)[y]
    return float((Z**2).sum() + ((Z - means) ** 2).sum() - ((means - Z.mean(axis=0)) ** 2).sum())


def fisher_gradient(Z: Array, y: Labels) -> Array:
    """The gradient (n, K) of half of `fisher_term`."""
    return np.asarray(2 * Z - 2 * average_classes(Z, y)[y] + Z.mean(axis=0))


def measure(
    X: Array, y: Labels, D: Array, labels: Labels, Z: Array, lambda1: float, lambda2: float, eta: float
) -> float:
    """The objective at the top of this file; the shared atoms are rows of D (K, m) labelled `SHARED`."""
    common = labels == SHARED
    Z_own, Z_0 = Z[:, ~common], Z[:, common]
    left = X - Z_0 @ D[common]
    D_own, labels = D[~common], labels[~common]
    own = own_atoms(y, labels)
    total = ((left - Z_own @ D_own) ** 2).sum() + ((left - (Z_own * own) @ D_own) ** 2).sum()
    others = Z_own * (1 - own)
    total += (others.T @ others * same_class(labels) * (D_own @ D_own.T)).sum()
    total += lambda2 * (fisher_term(Z_own, y) + ((Z_0 - Z_0.mean(axis=0)) ** 2).sum())
    rank = np.linalg.svd(D[common], compute_uv=False).sum() if common.any() else 0.0
    return float(total / 2 + lambda1 * np.abs(Z).sum() + eta * rank)


def code(
    X: Array, y: Labels, D: Array, labels: Labels, Z: Array, lambda1: float, lambda2: float, n_jobs: int | None
) -> Array:
    """Codes (n, K) with a lower objective than Z (n, K), the atoms held fixed.

    The means of the codes are fixed at their values in Z. The Fisher term, with its sum over all pairs of images, then
    is a sum over images, lambda2 (||z||^2 - z (2 m_c - m)^T), which majorises the true one and equals it in Z: so the
    images are separate problems, and solving them lowers the objective.
    """
    # Differs from the paper: exact solutions of these problems, where FDDL and LRSDL take proximal steps on all codes.
    common = labels == SHARED
    H: Array = D @ D.T * (1 + same_class(labels))
    H[np.diag_indices_from(H)] += np.where(common, lambda2, 2 * lambda2)

    def system(c: int) -> Array:
        if not common.any():
            return H
        own = labels == c
        twice: Array = H.copy()  # the class's atoms and the shared ones are in both terms of the fidelity
        twice[np.ix_(own, common)] *= 2
        twice[np.ix_(common, own)] *= 2
        return twice

    pull = np.where(common, Z.mean(axis=0), 2 * Z - fisher_gradient(Z, y))  # m_0, and 2 m_c - m
    B = X @ D.T * (1 + own_atoms(y, labels) + common) + lambda2 * pull
    return code_classes(system, B, y, lambda1, Z, n_jobs)


def step_class_atoms(X: Array, y: Labels, D: Array, labels: Labels, Z: Array) -> Array:
    """Class dictionaries with a lower objective, codes and shared atoms held fixed: D (K, m) with those rows new."""
    common = labels == SHARED
    left = X - Z[:, common] @ D[common]
    Z, labels = Z[:, ~common], labels[~common]
    F = Z.T @ Z * (1 + same_class(labels))
    E = (Z * (1 + own_atoms(y, labels))).T @ left
    D = D.copy()
    D[~common] = step_atoms(D[~common], F, E, labels)
    return D


def step_shared_atoms(X: Array, y: Labels, D: Array, labels: Labels, Z: Array, eta: float) -> Array:
    """Shared atoms with a lower objective, all else held fixed: D (K, m) with those rows new.

    ||L - Z_0 D_0||^2 + eta ||D_0||_*, where L is the residual of the class dictionaries, averaged over the two terms of
    the fidelity.
    """
    common = labels == SHARED
    Z_own, Z_0 = Z[:, ~common], Z[:, common]
    L = X - (Z_own * (1 + own_atoms(y, labels[~common]))) @ D[~common] / 2
    D = D.copy()
    D[common] = step_low_rank(D[common], 2 * Z_0.T @ Z_0, 2 * Z_0.T @ L, eta)
    return D


class FDDL(ClassDictionaries):
    """Fisher discrimination dictionary learning.

    Parameters
    ----------
    atoms_per_class : int, optional
        None, as in the paper's experiments on faces, or more than a class has images: as many as it has.
    lambda1, lambda2 : float
        Weights of the sparse and the Fisher term. The authors' demo has 0.005 and 0.05 for squares without our factors
        1/2, hence half the first.
    gamma, weight : float
        l1 weight when coding a new image, and weight of the distance of its code to the mean of a class: 0.005 (halved)
        and 0.5 in the authors' demo.
    max_iter : int
        Most rounds of codes and atoms; 15 in the authors' demo.
    tol : float
        Learning ends when a round lowers the objective by less than this fraction.
    features, n_jobs, random_state
        See `VectorBaseline`. Nothing else is random.

    Attributes
    ----------
    dictionary_ : ndarray (K, m)
    atom_labels_ : ndarray (K,)
        The index of each atom's class, -1 for shared atoms.
    class_codes_ : ndarray (n_classes, K)
        Mean code of each class's training images.
    objective_ : ndarray (rounds,)
    """

    def __init__(
        self,
        atoms_per_class: int | None = None,
        lambda1: float = 0.0025,
        lambda2: float = 0.05,
        gamma: float = 0.0025,
        weight: float = 0.5,
        *,
        max_iter: int = 15,
        tol: float = 1e-3,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.atoms_per_class = atoms_per_class
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.gamma = gamma
        self.weight = weight
        self.max_iter = max_iter
        self.tol = tol
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_shared(self) -> tuple[int, float]:
        """The number of shared atoms, and eta."""
        return 0, 0.0

    def _learn(self, X: Array, y: Labels) -> None:
        lambda1 = check_number("lambda1", self.lambda1, above=True)
        lambda2 = check_number("lambda2", self.lambda2)
        check_number("gamma", self.gamma, above=True)
        check_number("weight", self.weight)
        tol = check_number("tol", self.tol)
        if self.atoms_per_class is not None:
            check_count("atoms_per_class", self.atoms_per_class)
        n_shared, eta = self._check_shared()
        X = normalize(X)
        D, labels = start_dictionary(X, y, self.atoms_per_class, n_shared)

        def recode(D: Array, Z: Array) -> Array:
            return code(X, y, D, labels, Z, lambda1, lambda2, self.n_jobs)

        def step(D: Array, Z: Array) -> Array:
            D = step_class_atoms(X, y, D, labels, Z)
            return step_shared_atoms(X, y, D, labels, Z, eta) if n_shared else D

        D, Z, self.objective_ = alternate(
            recode,
            step,
            lambda D, Z: measure(X, y, D, labels, Z, lambda1, lambda2, eta),
            D,
            np.zeros((len(X), len(D))),
            check_count("max_iter", self.max_iter),
            tol,
        )
        Z = recode(D, Z)
        self.dictionary_, self.atom_labels_, self.n_iter_ = D, labels, len(self.objective_)
        self.class_codes_ = average_classes(Z, y)
        self._mean_code = Z.mean(axis=0)

    def _decide(self, X: Array) -> Array:
        X = normalize(X)
        D, common = self.dictionary_, self.atom_labels_ == SHARED
        H, B = D @ D.T, X @ D.T
        H[common, common] += self.lambda2
        B += self.lambda2 * np.where(common, self._mean_code, 0.0)
        Z = code_images(H, B, self.gamma, self.n_jobs)
        left = X - Z[:, common] @ D[common]
        scores = np.empty((len(X), len(self.classes_)))
        for c in range(len(self.classes_)):
            own = self.atom_labels_ == c
            scores[:, c] = -((left - Z[:, own] @ D[own]) ** 2).sum(axis=1)
        Z, means = Z[:, ~common], self.class_codes_[:, ~common]
        # ||z - m_c||^2 without ||z||^2, which is the same for all classes
        scores -= self.weight * ((means**2).sum(axis=1) - 2 * Z @ means.T)
        return scores


class LRSDL(FDDL):
    """Low-rank shared dictionary learning: FDDL on the residual of a dictionary shared by all classes.

    Parameters
    ----------
    atoms_per_class : int, optional
        None, or more than a class has images: as many as it has.
    n_shared : int
        Atoms of the shared dictionary; 0 makes this FDDL.
    lambda1, lambda2, eta : float
        Weights of the sparse term, the Fisher term and the shared dictionary's rank (its singular values' sum). These
        values and 5 shared atoms are those of the demo of the authors' toolbox, DICTOL, on Extended Yale B.
    gamma, weight, max_iter, tol, features, n_jobs, random_state
        As for FDDL. The toolbox codes with 0.001, and weights residual and distance equally.

    Attributes
    ----------
    As for FDDL.
    """

    def __init__(
        self,
        atoms_per_class: int | None = None,
        n_shared: int = 5,
        lambda1: float = 0.001,
        lambda2: float = 0.01,
        eta: float = 0.02,
        gamma: float = 0.001,
        weight: float = 1.0,
        *,
        max_iter: int = 15,
        tol: float = 1e-3,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            atoms_per_class,
            lambda1,
            lambda2,
            gamma,
            weight,
            max_iter=max_iter,
            tol=tol,
            features=features,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_shared = n_shared
        self.eta = eta

    def _check_shared(self) -> tuple[int, float]:
        return check_count("n_shared", self.n_shared, minimum=0), check_number("eta", self.eta)

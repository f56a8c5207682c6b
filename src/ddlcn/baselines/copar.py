"""DL-COPAR (Kong & Wang 2012): a particular dictionary for each class, and one common to all.

In: X (n, m), rows of unit norm, and classes y (n,). With D = [D_1 .. D_C, D_0], Z_c^j the codes of class c's
images over D_j:

    1/2 ||X - Z D||^2 + 1/2 sum_c (||X_c - Z_c^c D_c - Z_c^0 D_0||^2 + sum_{j != c, 0} ||Z_c^j||^2)
    + lambda1 ||Z||_1 + eta / 2 sum_{i != j} ||D_i D_j^T||^2

over Z and atoms of norm at most one: all atoms together, and a class's own with the common ones, should reconstruct
its images; those of other classes should not be used; and dictionaries should be incoherent. An image is then coded
over [D_c, D_0] for each class, 1/2 ||x - z D||^2 + gamma ||z||_1, and the class with the smallest value is predicted
(the paper's local classifier), or over all atoms at once, and the class with the smallest
||x - z_0 D_0 - z_c D_c||^2 (its global one).
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
)
from ddlcn.utils.validation import check_choice, check_count, check_number

Array = NDArray[Any]


def useful_atoms(y: Labels, labels: Labels) -> Array:
    """(n, K): 1 where the atom is shared or of the image's class, else 0."""
    return np.asarray(own_atoms(y, labels) + (labels == SHARED))


def measure(X: Array, y: Labels, D: Array, labels: Labels, Z: Array, lambda1: float, eta: float) -> float:
    """The objective at the top of this file, of codes Z (n, K) over atoms D (K, m)."""
    useful = useful_atoms(y, labels)
    total = ((X - Z @ D) ** 2).sum() + ((X - (Z * useful) @ D) ** 2).sum() + ((Z * (1 - useful)) ** 2).sum()
    total += eta * ((D @ D.T * (1 - same_class(labels))) ** 2).sum()
    return float(total / 2 + lambda1 * np.abs(Z).sum())


def code(X: Array, y: Labels, D: Array, labels: Labels, Z: Array, lambda1: float, n_jobs: int | None) -> Array:
    """The codes (n, K) with the lowest objective, atoms held fixed; Z (n, K) is the start."""
    gram = D @ D.T

    def system(c: int) -> Array:
        useful = (labels == c) | (labels == SHARED)
        H: Array = gram.copy()
        H[np.ix_(useful, useful)] *= 2
        H[~useful, ~useful] += 1
        return H

    return code_classes(system, X @ D.T * (1 + useful_atoms(y, labels)), y, lambda1, Z, n_jobs)


def step_dictionary(X: Array, y: Labels, D: Array, labels: Labels, Z: Array, eta: float) -> Array:
    """Atoms (K, m) with a lower objective, codes held fixed: dictionary after dictionary, the common one last."""
    # Differs from the paper: the codes of other classes' images over D_c, which it assumes to be zero, are included;
    # otherwise the objective may increase.
    useful = useful_atoms(y, labels)
    ours = Z * useful
    F = Z.T @ Z + ours.T @ ours
    E = (Z + ours).T @ X
    D = D.copy()
    scatter = D.T @ D  # (m, m)
    for label in [*range(int(y.max()) + 1), SHARED]:
        group = np.flatnonzero(labels == label)
        if len(group) == 0:
            continue
        atoms = D[group]
        others = scatter - atoms.T @ atoms
        mutual = F[np.ix_(group, group)]
        fixed = E[group] - F[group] @ D + mutual @ atoms
        bound = eta * float(np.linalg.norm(others))  # at least the largest eigenvalue, close to it if one dominates
        for _ in range(5):
            # eta ||A d||^2 is majorised by its tangent plus bound ||d - d_now||^2: the update then is as without it.
            linear = fixed + bound * atoms - eta * atoms @ others
            atoms = step_atoms(atoms, mutual + bound * np.eye(len(group)), linear, labels[group], n_sweeps=1)
        scatter = others + atoms.T @ atoms
        D[group] = atoms
    return D


class DLCOPAR(ClassDictionaries):
    """Dictionary learning that separates the particularity and the commonality.

    Parameters
    ----------
    atoms_per_class : int, optional
        None, or more than a class has images: as many as it has.
    n_shared : int
        Atoms of the common dictionary.
    lambda1, eta : float
        Weights of the sparse term (the paper's lambda) and of the incoherence term; 0.001 and 0.01, and 5 common atoms,
        are the settings of the toolbox DICTOL for Extended Yale B.
    gamma : float
        Weight of the l1 norm when coding a new image.
    classify : {"local", "global"}
        The paper's two classifiers.
    max_iter : int
        Most rounds of codes and atoms; 10 in DICTOL.
    tol : float
        Learning ends when a round lowers the objective by less than this fraction.
    features, n_jobs, random_state
        See `VectorBaseline`. Nothing else is random.

    Attributes
    ----------
    dictionary_ : ndarray (K, m)
    atom_labels_ : ndarray (K,)
        The index of each atom's class, -1 for common atoms.
    objective_ : ndarray (rounds,)
    """

    def __init__(
        self,
        atoms_per_class: int | None = 15,
        n_shared: int = 5,
        lambda1: float = 0.001,
        eta: float = 0.01,
        gamma: float = 0.001,
        classify: str = "local",
        *,
        max_iter: int = 10,
        tol: float = 1e-3,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.atoms_per_class = atoms_per_class
        self.n_shared = n_shared
        self.lambda1 = lambda1
        self.eta = eta
        self.gamma = gamma
        self.classify = classify
        self.max_iter = max_iter
        self.tol = tol
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        lambda1 = check_number("lambda1", self.lambda1, above=True)
        eta = check_number("eta", self.eta)
        tol = check_number("tol", self.tol)
        check_number("gamma", self.gamma, above=True)
        check_choice("classify", self.classify, ("local", "global"))
        if self.atoms_per_class is not None:
            check_count("atoms_per_class", self.atoms_per_class)
        X = normalize(X)
        D, labels = start_dictionary(X, y, self.atoms_per_class, check_count("n_shared", self.n_shared, minimum=0))
        self.dictionary_, _, self.objective_ = alternate(
            lambda D, Z: code(X, y, D, labels, Z, lambda1, self.n_jobs),
            lambda D, Z: step_dictionary(X, y, D, labels, Z, eta),
            lambda D, Z: measure(X, y, D, labels, Z, lambda1, eta),
            D,
            np.zeros((len(X), len(D))),
            check_count("max_iter", self.max_iter),
            tol,
        )
        self.atom_labels_, self.n_iter_ = labels, len(self.objective_)

    def _decide(self, X: Array) -> Array:
        X = normalize(X)
        is_global = self.classify == "global"
        if is_global:
            codes = code_images(self.dictionary_ @ self.dictionary_.T, X @ self.dictionary_.T, self.gamma, self.n_jobs)
        scores = np.empty((len(X), len(self.classes_)))
        for c in range(len(self.classes_)):
            useful = (self.atom_labels_ == c) | (self.atom_labels_ == SHARED)
            D = self.dictionary_[useful]
            Z = codes[:, useful] if is_global else code_images(D @ D.T, X @ D.T, self.gamma, self.n_jobs)
            scores[:, c] = -((X - Z @ D) ** 2).sum(axis=1) / 2
            if not is_global:
                scores[:, c] -= self.gamma * np.abs(Z).sum(axis=1)
        return scores

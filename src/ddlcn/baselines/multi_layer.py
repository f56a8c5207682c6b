"""Layers of discriminative dictionaries with local codes: MDDL (Song et al. 2019).

Vectors Y_1 (n, m) of unit norm and labels in, scores Z_L W_L^T out. Layer l has a dictionary D (K, m_l) and codes Z
(n, K) of its input Y_l; the next input is Y_(l+1) = max(Z, 0), rows scaled to unit norm. Layers are learned one after
the other. With one-hot labels H (n, n_classes) and a classifier W (n_classes, K), each lowers

    ||Y - Z D||^2 + beta sum_ij ||y_i - d_j||^2 z_ij^2 + gamma (||H - Z W^T||^2 + rho ||W||^2),    ||d_j|| <= 1

by W, Z and D in turn. Atoms far from an image are expensive to use: that is the locality constraint, and keeps codes
least squares. New images have no labels, so everything that leaves a layer is coded without the term of H, and the
classifier of the last layer is fitted again to such codes.

From the abstract and follow-up papers: several layers of dictionaries, each learned on the codes of the one before,
locality, a classifier learned with the atoms. We did not have the formulas: the form of the locality (that of LLC, over
all atoms), the nonlinearity between layers, solver and weights are ours.
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
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_number, check_per_layer

Array = NDArray[Any]
ROWS = 64  # images per piece of work for a thread
# Added to the diagonal: an atom equal to the image has no other weight.
RIDGE = 1e-6


def square_distances(Y: Array, D: Array) -> Array:
    """||y_i - d_j||^2 (n, K) of rows Y (n, m) and atoms D (K, m)."""
    squares = np.einsum("ij,ij->i", Y, Y)[:, None] + np.einsum("ij,ij->i", D, D) - 2.0 * (Y @ D.T)
    return np.asarray(np.maximum(squares, 0.0))


def solve_rows(gram: Array, diagonal: Array, B: Array, n_jobs: int | None = None) -> Array:
    """Rows z (n, K) of (gram + diag(diagonal_i)) z = b_i, each by Cholesky.

    Parameters
    ----------
    gram : ndarray (K, K), positive semi-definite
    diagonal, B : ndarrays (n, K)
    """
    Z = np.empty_like(B)
    on_diagonal = np.diag_indices(len(gram))

    def solve(start: int) -> None:
        for i in range(start, min(start + ROWS, len(B))):
            system = gram.copy()
            system[on_diagonal] += diagonal[i]
            # With the transpose, which is the same, LAPACK has the order of memory that it needs and copies nothing.
            factor = linalg.cho_factor(system.T, overwrite_a=True, check_finite=False)
            Z[i] = linalg.cho_solve(factor, B[i], check_finite=False)

    for _ in map_threads(solve, range(0, len(B), ROWS), n_jobs):
        pass
    return Z


def encode_local(Y: Array, D: Array, beta: float, n_jobs: int | None = None) -> Array:
    """Codes (n, K) of rows Y (n, m): min ||y - z D||^2 + beta sum_j ||y - d_j||^2 z_j^2."""
    return solve_rows(D @ D.T, beta * square_distances(Y, D) + RIDGE, Y @ D.T, n_jobs)


def fit_labels(Z: Array, H: Array, rho: float) -> Array:
    """W (n_classes, K): min ||H - Z W^T||^2 + rho ||W||^2."""
    system = Z.T @ Z
    system[np.diag_indices(len(system))] += max(rho, 1e-300)
    return np.asarray(linalg.solve(system, Z.T @ H, assume_a="pos").T)


def mean_square(Z: Array) -> float:
    """Mean squared norm of the rows: what a ridge is measured in."""
    return max(float((Z**2).sum()) / len(Z), 1e-12)


@dataclass(frozen=True)
class Layer:
    """Input Y (n, m) of a layer, one-hot labels H (n, n_classes), and the weights of its objective."""

    Y: Array
    H: Array
    beta: float
    gamma: float
    rho: float

    def code(self, D: Array, W: Array, n_jobs: int | None = None) -> Array:
        """Z (n, K) for D (K, m) and W (n_classes, K)."""
        gram = D @ D.T + self.gamma * W.T @ W
        B = self.Y @ D.T + self.gamma * self.H @ W
        return solve_rows(gram, self.beta * square_distances(self.Y, D) + RIDGE, B, n_jobs)

    def step(self, D: Array, Z: Array, labels: Labels) -> Array:
        """Move D (K, m) nearer its minimum for Z (n, K); `labels` (K,) are the atoms' classes."""
        squares = self.beta * Z**2
        return step_atoms(D, Z.T @ Z + np.diag(squares.sum(axis=0)), (Z + squares).T @ self.Y, labels)

    def measure(self, D: Array, W: Array, Z: Array) -> float:
        """The objective, with the small RIDGE on the codes."""
        local = ((self.beta * square_distances(self.Y, D) + RIDGE) * Z**2).sum()
        labels = ((self.H - Z @ W.T) ** 2).sum() + self.rho * (W**2).sum()
        return float(((self.Y - Z @ D) ** 2).sum() + local + self.gamma * labels)


def learn_layer(
    layer: Layer, D: Array, Z: Array, labels: Labels, n_iter: int, n_jobs: int | None = None
) -> tuple[Array, Array]:
    """D (K, m) and the objective after each iteration (n_iter,), from a start D and Z (n, K)."""
    objective = []
    for _ in range(n_iter):
        W = fit_labels(Z, layer.H, layer.rho)
        Z = layer.code(D, W, n_jobs)
        D = layer.step(D, Z, labels)
        objective.append(layer.measure(D, W, Z))
    return D, np.array(objective)


def pass_on(Z: Array) -> Array:
    """The next layer's input (n, K) from codes Z (n, K)."""
    return np.asarray(normalize(np.maximum(Z, 0.0)))


class MDDL(ClassDictionaries):
    """Multi-layer discriminative dictionary learning with a locality constraint.

    Parameters
    ----------
    n_layers : int
        Published: 2 and 3.
    atoms_per_class : int
        Of every layer; at most the training images of the class.
    beta : float or tuple
        Weight of the locality, for all layers or one per layer; None means 0.01 in the first and 0.1 in the others. Our
        setting, as the next two, from one fold of training images of Extended Yale B and of AR (228 and 400). There 0.1
        in the second layer has 0 to 3 points more than 0.01.
    gamma : float
        Weight of the labels. 0, 0.01, 0.1 and 1 differ by less than 1.5 points on the fold, with no order.
    ridge : float
        rho, in units of the mean squared norm of a code.
    max_iter : int
        Iterations per layer. Learning does not help on the fold: with two layers 97.4 % (Extended Yale B) and 98.5 (AR)
        from the start dictionaries, 95.6 to 97.4 and 96.3 to 98.3 after 3 or 10 iterations.
    features, n_jobs, random_state
        See `VectorBaseline`. Nothing else here is random.

    Attributes
    ----------
    dictionaries_ : list of ndarray (K, m_l)
    coef_ : ndarray (n_classes, K)
        W of the last layer.
    objective_ : list of ndarray (max_iter,)
        One per layer.
    n_iter_ : int
    """

    def __init__(
        self,
        n_layers: int = 2,
        atoms_per_class: int = 15,
        *,
        beta: Any = None,
        gamma: float = 1.0,
        ridge: float = 1.0,
        max_iter: int = 1,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_layers = n_layers
        self.atoms_per_class = atoms_per_class
        self.beta = beta
        self.gamma = gamma
        self.ridge = ridge
        self.max_iter = max_iter
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        n_atoms, n_iter = check_count("atoms_per_class", self.atoms_per_class), check_count("max_iter", self.max_iter)
        gamma, ridge = check_number("gamma", self.gamma), check_number("ridge", self.ridge, above=True)
        self._betas = self._check_betas()
        H, Z = np.eye(len(self.classes_))[y], X
        self.dictionaries_: list[Array] = []
        self.objective_: list[Array] = []
        for beta in self._betas:
            Y = pass_on(Z) if self.dictionaries_ else normalize(X)
            D, labels = start_dictionary(Y, y, n_atoms, 0)
            Z = encode_local(Y, D, beta, self.n_jobs)
            layer = Layer(Y, H, beta, gamma, ridge * mean_square(Z))
            D, objective = learn_layer(layer, D, Z, labels, n_iter, self.n_jobs)
            Z = encode_local(Y, D, beta, self.n_jobs)
            self.dictionaries_.append(D)
            self.objective_.append(objective)
        self.coef_, self.n_iter_ = fit_labels(Z, H, ridge * mean_square(Z)), n_iter

    def _decide(self, X: Array) -> Array:
        """Scores (n, n_classes) of images X (n, m)."""
        Z = encode_local(normalize(X), self.dictionaries_[0], self._betas[0], self.n_jobs)
        for D, beta in zip(self.dictionaries_[1:], self._betas[1:], strict=True):
            Z = encode_local(pass_on(Z), D, beta, self.n_jobs)
        return np.asarray(Z @ self.coef_.T)

    def _check_betas(self) -> tuple[float, ...]:
        n_layers = check_count("n_layers", self.n_layers)
        given = (0.01,) + (0.1,) * (n_layers - 1) if self.beta is None else self.beta
        return tuple(check_number("beta", beta) for beta in check_per_layer("beta", given, n_layers))

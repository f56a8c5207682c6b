"""Dictionaries one after the other, trained together: DDL (Mahdizadehaghdam, Panahi, Krim and Dai 2019).

Not the greedy `DDL` of Tariyal et al. 2016. Vectors Y_1 (n, m) of unit norm and labels in, scores Y_(L+1) V^T + b out.
Layer l codes its input over D_l (K_l, m_l), and its codes, scaled to unit norm, are the next input:

    Z_l = argmin  1/2 ||Y_l - Z D_l||^2 + alpha ||Z||_1 + mu/2 ||Z||^2,          Y_(l+1) = Z_l / ||Z_l||

All D_l, V and b together lower the mean cross-entropy of the scores, by Adam (Kingma and Ba 2015) on small batches:

    min  - mean_i log softmax(V y_i + b)_class of i + decay/2 ||V||^2,           rows of D_l of norm at most one

Reconstruction decides the codes, the labels decide the atoms. The codes are differentiated where they are optimal: on
its support S a code solves (D_S D_S^T + mu) z_S = D_S y - alpha sign(z_S), a linear system (Mairal, Bach, Ponce 2012).

From the paper's abstract: several synthesis dictionaries trained by a classification objective, codes by reducing a
reconstruction loss in each layer. It has dictionaries of several image scales; ours see whole vectors. Elastic net,
scaling, start, optimiser and all settings are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import softmax
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels
from ddlcn.baselines.class_dictionaries import ClassDictionaries, code_images, code_rows, start_dictionary
from ddlcn.utils.validation import check_count, check_number, check_per_layer

Array = NDArray[Any]
TINY = 1e-12  # codes of a smaller norm are not scaled up
# Times V of the ridge regression: its scores of 1 and 0 alone would leave the softmax undecided.
STEEP = 10.0
# Adam's usual constants.
MEMORY, SQUARE_MEMORY, FLOOR = 0.9, 0.999, 1e-8


def make_system(D: Array, mu: float) -> Array:
    """D D^T + mu (K, K): what all images of a layer have in common."""
    system: Array = D @ D.T
    system[np.diag_indices(len(system))] += mu
    return system


def scale_rows(Z: Array) -> tuple[Array, Array]:
    """Rows of unit norm (n, K), and the norms (n, 1)."""
    norms = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), TINY)
    return Z / norms, norms


def pull_back(Y: Array, D: Array, Z: Array, system: Array, slope: Array) -> tuple[Array, Array]:
    """Gradients of a loss in D (K, m) and in Y (n, m), from its gradient `slope` (n, K) in the codes Z (n, K)."""
    inner = np.zeros_like(Z)
    for i, z in enumerate(Z):
        used = np.flatnonzero(z)
        if len(used):
            inner[i, used] = linalg.solve(system[np.ix_(used, used)], slope[i, used], assume_a="pos")
    back = inner @ D
    return inner.T @ (Y - Z @ D) - Z.T @ back, back


class Adam:
    """Steps for a list of arrays, in place."""

    def __init__(self, arrays: Sequence[Array], rate: float) -> None:
        self._arrays, self._rate, self._t = arrays, rate, 0
        self._means = [np.zeros_like(array) for array in arrays]
        self._squares = [np.zeros_like(array) for array in arrays]

    def step(self, gradients: Sequence[Array]) -> None:
        self._t += 1
        for array, gradient, mean, square in zip(self._arrays, gradients, self._means, self._squares, strict=True):
            mean += (1 - MEMORY) * (gradient - mean)
            square += (1 - SQUARE_MEMORY) * (gradient**2 - square)
            root = np.sqrt(square / (1 - SQUARE_MEMORY**self._t)) + FLOOR
            array -= self._rate * mean / (1 - MEMORY**self._t) / root


class Network:
    """Dictionaries, V and b, and the gradient of the loss in all of them.

    Attributes
    ----------
    dictionaries : list of ndarray (K_l, m_l)
    V : ndarray (n_classes, K_L)
    b : ndarray (n_classes,)
    """

    def __init__(self, dictionaries: list[Array], V: Array, b: Array, alphas: Sequence[float], mu: float) -> None:
        self.dictionaries, self.V, self.b = dictionaries, V, b
        self._alphas, self._mu = alphas, mu

    @property
    def arrays(self) -> list[Array]:
        return [*self.dictionaries, self.V, self.b]

    def differentiate(self, Y: Array, H: Array, codes: list[Array], decay: float) -> tuple[float, list[Array]]:
        """The loss, and its gradients as `arrays`, for inputs Y (n, m) and one-hot labels H (n, n_classes).

        `codes` (n, K_l) of each layer are where coding starts; they are changed to the optimal ones.
        """
        passed = []
        for D, alpha, Z in zip(self.dictionaries, self._alphas, codes, strict=True):
            system = make_system(D, self._mu)
            code_rows(system, Y @ D.T, alpha, Z)
            passed.append((Y, D, Z, system))
            Y = scale_rows(Z)[0]
        chances = softmax(Y @ self.V.T + self.b, axis=1)
        loss = -np.log(np.maximum((chances * H).sum(axis=1), 1e-300)).mean() + decay / 2 * (self.V**2).sum()
        miss = (chances - H) / len(H)
        gradients = [miss.T @ Y + decay * self.V, miss.sum(axis=0)]
        slope = miss @ self.V
        for entry, D, Z, system in reversed(passed):
            scaled, norms = scale_rows(Z)
            slope = (slope - scaled * (scaled * slope).sum(axis=1, keepdims=True)) / norms
            in_atoms, slope = pull_back(entry, D, Z, system, slope)
            gradients.insert(0, in_atoms)
        return float(loss), gradients

    def encode(self, Y: Array, n_jobs: int | None) -> Array:
        """Inputs (n, m) to what the classifier sees (n, K_L)."""
        for D, alpha in zip(self.dictionaries, self._alphas, strict=True):
            Y = scale_rows(code_images(make_system(D, self._mu), Y @ D.T, alpha, n_jobs))[0]
        return Y


def train_network(
    network: Network, Y: Array, H: Array, n_epochs: int, batch_size: int, rate: float, decay: float,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Train in place on inputs Y (n, m) and one-hot labels H (n, n_classes): each epoch's mean loss (n_epochs,)."""
    kept = [np.zeros((len(Y), len(D))) for D in network.dictionaries]  # each image's last codes, to start from
    optimiser, losses = Adam(network.arrays, rate), np.zeros(n_epochs)
    for epoch in range(n_epochs):
        order = rng.permutation(len(Y))
        for start in range(0, len(Y), batch_size):
            rows = order[start : start + batch_size]
            codes = [Z[rows] for Z in kept]
            loss, gradients = network.differentiate(Y[rows], H[rows], codes, decay)
            for Z, new in zip(kept, codes, strict=True):
                Z[rows] = new
            optimiser.step(gradients)
            for D in network.dictionaries:
                D /= np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1.0)
            losses[epoch] += loss * len(rows) / len(Y)
    return losses


class DDL2019(ClassDictionaries):
    """Deep dictionary learning, all layers trained together by a classification loss.

    Parameters
    ----------
    n_layers : int
    atoms_per_class : int
        Of every layer; at most the training images of the class.
    alpha : float or tuple
        Weight of the l1 norm, for all layers or one per layer; None means 0.003 in the first and 0.01 in the others.
        Our setting, as the next ones, from folds of training images of Extended Yale B (228 each). On one of them, not
        trained: 96.5 %; with 0.01 in both layers 93.9.
    mu : float
        Weight of the squared norm of the codes.
    n_epochs, batch_size : int
    learning_rate : float
        Adam moves each entry of an atom by about as much at each step, and entries are about 0.04. On three folds 97.4
        % at the start, 97.5 after training; at 0.003 the atoms are lost: 95.4 on two, where the start has 97.8.
    decay : float
        Weight of the squared norm of V.
    features, n_jobs, random_state
        See `VectorBaseline`. The order of the images is random.

    Attributes
    ----------
    dictionaries_ : list of ndarray (K_l, m_l)
    coef_, intercept_ : ndarrays (n_classes, K_L) and (n_classes,)
    losses_ : ndarray (n_epochs,)
    """

    def __init__(
        self,
        n_layers: int = 2,
        atoms_per_class: int = 15,
        *,
        alpha: Any = None,
        mu: float = 0.01,
        n_epochs: int = 5,
        batch_size: int = 128,
        learning_rate: float = 0.0001,
        decay: float = 1e-4,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_layers = n_layers
        self.atoms_per_class = atoms_per_class
        self.alpha = alpha
        self.mu = mu
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        n_layers, n_atoms = check_count("n_layers", self.n_layers), check_count("atoms_per_class", self.atoms_per_class)
        given = (0.003,) + (0.01,) * (n_layers - 1) if self.alpha is None else self.alpha
        alphas = [check_number("alpha", alpha, above=True) for alpha in check_per_layer("alpha", given, n_layers)]
        mu, decay = check_number("mu", self.mu, above=True), check_number("decay", self.decay, above=True)
        n_epochs, batch_size = check_count("n_epochs", self.n_epochs, 0), check_count("batch_size", self.batch_size)
        rate = check_number("learning_rate", self.learning_rate, above=True)
        rng = np.random.default_rng(self._spawn(2)[1])
        X, H = normalize(X), np.eye(len(self.classes_))[y]
        self._network = start_network(X, y, n_atoms, alphas, mu, self.n_jobs)
        self.losses_ = train_network(self._network, X, H, n_epochs, batch_size, rate, decay, rng)
        self.dictionaries_ = self._network.dictionaries
        self.coef_, self.intercept_ = self._network.V, self._network.b

    def _decide(self, X: Array) -> Array:
        """Scores (n, n_classes) of images X (n, m)."""
        return np.asarray(self._network.encode(normalize(X), self.n_jobs) @ self.coef_.T + self.intercept_)


def start_network(Y: Array, y: Labels, n_atoms: int, alphas: Sequence[float], mu: float, n_jobs: int | None) -> Network:
    """Layer after layer from the classes' means and components, and V by ridge regression on the last codes."""
    H, network = np.eye(int(y.max()) + 1)[y], Network([], np.empty(0), np.empty(0), alphas, mu)
    for alpha in alphas:
        D = start_dictionary(Y, y, n_atoms, 0)[0]
        network.dictionaries.append(D)
        Y = scale_rows(code_images(make_system(D, mu), Y @ D.T, alpha, n_jobs))[0]
    network.V = STEEP * linalg.solve(Y.T @ Y + np.eye(Y.shape[1]), Y.T @ H, assume_a="pos").T
    network.b = np.zeros(H.shape[1])
    return network

"""Supervised dictionary learning on two graphs: SupGraphDL (Yankelevsky & Elad 2017).

    min  ||X - Z D||^2 + alpha (tr(D L D^T) + mu ||L||^2) + beta tr(Z^T M Z) + gamma (||H - Z W^T||^2 + ridge ||W||^2)

over D, Z, W and L, subject to at most `n_nonzero` entries per row of Z, atoms of unit norm, and L a graph's Laplacian
of trace m. X (n, m) images, D (K, m) atoms, Z (n, K) codes, H (n, n_classes) one-hot labels, W (n_classes, K) the
classifier. L (m, m) is the graph of the features, learned with the dictionary (SupGraphDL-L); alpha = 0 leaves it out.
M (n, n) is the graph of the images: each with its nearest neighbours of its class, so that their codes are alike.

In turn, none raising the objective:

    codes     image by image, by orthogonal matching pursuit given its neighbours' codes; kept if better than the old
    atoms     one after another, exactly on the sphere, and then its codes on their support
    W         ridge regression
    L         every few rounds, by projected gradients with momentum

In the basis of L's eigenvectors L is diagonal and nothing else changes: there an atom is the root of one equation.

An image x is coded over D by orthogonal matching pursuit; the class with the largest entry of z W^T is predicted.

We had the paper's opening and, of its unsupervised form (Dual Graph Regularized Dictionary Learning, 2016), the
authors' program. From these: both graph terms, the problem that defines L and the 0.8 in it, atom and codes updated
together. From memory: the classifier's term. Ours: neighbours of the same class only, no graph for new images, all
weights, and the three places where the program's steps may raise the objective: it codes by five rounds of ADMM,
normalises an atom after solving for it without the constraint, and replaces similar atoms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.baselines.ksvd_learning import fit_ridge, improve_code, start_by_class
from ddlcn.coding.omp import encode_omp
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]
GRAPH_ROUNDS = 300  # steps towards L; 1,000 lower its objective by another 1e-4 of it on 504 random faces
EVERY = 5  # rounds between two graphs of the features


class SupGraphDL(VectorBaseline):
    """Dictionary and classifier, with codes smooth over a graph of images and atoms over a graph of features.

    Parameters
    ----------
    atoms_per_class : int
        At most the training images of the class.
    n_nonzero : int
        Entries of a code.
    alpha : float
        Weight of the features' graph. Ours, as the next three and `n_neighbors`. On a fold of training faces of
        Extended Yale B (24 and 8 per person, six rounds) 0, 0.001 and 0.01 have 95.4, 95.4 and 94.7 %: no two numbers
        of a random face belong together.
    beta : float
        Weight of the images' graph. On that fold, without the other graph, 0, 0.01 and 0.1 have 93.8, 95.4 and 94.7 %.
    gamma : float
        Weight of the labels.
    ridge : float
    mu : float
        How evenly the weights of the features' graph are spread; 0.8 is the default of the authors' program.
    n_neighbors : int
        Neighbours of an image in its class.
    max_iter, init_iter : int
        Rounds over all images, and before that of K-SVD within each class.
    features, n_jobs, random_state
        See `VectorBaseline`.

    Attributes
    ----------
    dictionary_ : ndarray (atoms, m)
    atom_labels_ : ndarray (atoms,)
        The index of the class that each atom started from.
    coef_ : ndarray (n_classes, atoms)
    laplacian_ : ndarray (m, m)
        L; zero if alpha is 0.
    objective_ : list of float
        After every round.
    n_iter_ : int
    """

    def __init__(
        self,
        atoms_per_class: int = 15,
        n_nonzero: int = 30,
        alpha: float = 1e-3,
        beta: float = 0.01,
        gamma: float = 1e-3,
        ridge: float = 1e-3,
        mu: float = 0.8,
        n_neighbors: int = 5,
        max_iter: int = 15,
        init_iter: int = 20,
        *,
        features: Any = "pixels",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.atoms_per_class = atoms_per_class
        self.n_nonzero = n_nonzero
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.ridge = ridge
        self.mu = mu
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.init_iter = init_iter
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Array, y: Labels) -> None:
        n_nonzero, self.n_iter_ = check_count("n_nonzero", self.n_nonzero), check_count("max_iter", self.max_iter)
        alpha, beta, gamma = (check_number(name, getattr(self, name)) for name in ("alpha", "beta", "gamma"))
        ridge, mu = check_number("ridge", self.ridge, above=True), check_number("mu", self.mu, above=True)
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
        H, M = np.eye(n_classes)[y], link_images(X, y, check_count("n_neighbors", self.n_neighbors))
        Z = np.asarray(encode_omp(X, D, n_nonzero, n_jobs=self.n_jobs).toarray())
        W = fit_ridge(sparse.csr_array(Z), H, ridge)
        L = np.zeros((X.shape[1], X.shape[1]))
        root, self.objective_ = np.sqrt(gamma), []
        for i in range(self.n_iter_):
            if alpha and i % EVERY == 0:
                L = learn_graph(D, mu, L)
                curves, basis = np.linalg.eigh(L)
            elif i == 0:
                curves, basis = np.zeros(len(L)), np.eye(len(L))
            targets, atoms = np.hstack([X @ basis, root * H]), np.hstack([D @ basis, root * W.T])
            code_images(targets, atoms, Z, beta * M, n_nonzero)
            update_atoms(targets, atoms, Z, beta * M, alpha * np.maximum(curves, 0.0))
            D, W = normalize(atoms[:, : len(L)] @ basis.T), fit_ridge(sparse.csr_array(Z), H, ridge)
            self.objective_.append(measure(X, H, D, Z, W, L, M, alpha, beta, gamma, ridge, mu))
        self.dictionary_, self.coef_, self.laplacian_ = np.ascontiguousarray(D), W, L
        self._gram = D @ D.T

    def _decide(self, X: Array) -> Array:
        codes = encode_omp(normalize(X), self.dictionary_, self.n_nonzero, n_jobs=self.n_jobs, gram=self._gram)
        return np.asarray(codes @ self.coef_.T)


def measure(
    X: Array, H: Array, D: Array, Z: Array, W: Array, L: Array, M: Array,
    alpha: float, beta: float, gamma: float, ridge: float, mu: float,
) -> float:  # fmt: skip
    """The objective."""
    features = ((D @ L) * D).sum() + mu * (L**2).sum()
    labels = ((H - Z @ W.T) ** 2).sum() + ridge * (W**2).sum()
    return float(((X - Z @ D) ** 2).sum() + alpha * features + beta * ((M @ Z) * Z).sum() + gamma * labels)


def link_images(X: Array, y: Labels, n_neighbors: int) -> Array:
    """The Laplacian (n, n) of the graph of images X (n, m) of unit norm, each linked with its nearest of its class.

    Two that are among each other's nearest weigh 1, one-sided ones 1 / 2, all divided by `n_neighbors`.
    """
    A = np.zeros((len(X), len(X)))
    for c in range(int(y.max()) + 1):
        members = np.flatnonzero(y == c)
        near = X[members] @ X[members].T
        np.fill_diagonal(near, -np.inf)
        k = min(n_neighbors, len(members) - 1)
        for i, row in enumerate(near):
            A[members[i], members[np.argsort(-row, kind="stable")[:k]]] = 1.0
    A = (A + A.T) / (2.0 * n_neighbors)
    return np.asarray(np.diag(A.sum(axis=1)) - A)


def learn_graph(D: Array, mu: float, start: Array) -> Array:
    """The Laplacian L (m, m) of trace m that minimises tr(D L D^T) + mu ||L||^2, D (K, m): FISTA over the weights.

    The result is never worse than `start`, if that is a Laplacian of trace m.
    """
    m = D.shape[1]
    if m == 1:
        return np.zeros((1, 1))
    gram = D.T @ D
    squares = np.diag(gram)
    apart = squares[:, None] + squares - 2.0 * gram  # squared distances between features
    edges = ~np.eye(m, dtype=bool)
    A = np.where(start.any(), -start * edges, edges / (m - 1.0))
    old, fast, momentum, step = A, A, 1.0, 1.0 / (mu * (2.0 + 2.0 * m))
    for _ in range(GRAPH_ROUNDS):
        degrees = fast.sum(axis=1)
        slope = apart / 2.0 + mu * (2.0 * fast + degrees[:, None] + degrees)
        A = np.zeros((m, m))
        A[edges] = project_simplex((fast - step * slope)[edges], float(m))
        before, momentum = momentum, (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        fast = A + (before - 1.0) / momentum * (A - old)
        if np.abs(A - old).max() < 1e-9:
            break
        old = A
    L = np.diag(A.sum(axis=1)) - A

    def cost(L: Array) -> float:
        return float((gram * L).sum() + mu * (L**2).sum())

    return np.asarray(start if start.any() and cost(start) < cost(L) else L)


def project_simplex(v: Array, total: float) -> Array:
    """The nearest point to v (n,) with entries of at least 0 and the sum `total` (Michelot 1986)."""
    kept = v
    while True:
        threshold = (kept.sum() - total) / len(kept)
        above = kept > threshold
        if above.all():
            return np.asarray(np.maximum(v - threshold, 0.0))
        kept = kept[above]


def code_images(X: Array, D: Array, Z: Array, M: Array, n_nonzero: int) -> None:
    """Lower ||X - Z D||^2 + tr(Z^T M Z) row by row of Z (n, K), in place; M (n, n) a Laplacian."""
    gram, products = D @ D.T, X @ D.T
    for i in range(len(X)):
        linked = np.flatnonzero(M[i])
        pull = M[i, i] * Z[i] - M[i, linked] @ Z[linked]  # the neighbours' codes, weighted
        square = X[i] @ X[i] + pull @ pull / max(M[i, i], 1e-300)
        improve_code(Z[i], gram + M[i, i] * np.eye(len(D)), products[i] + pull, square, n_nonzero)


def update_atoms(X: Array, D: Array, Z: Array, M: Array, curves: Array) -> None:
    """Lower ||X - Z D||^2 + tr(Z^T M Z) + sum_kf curves_f D_kf^2, atom by atom, in place.

    The first len(curves) columns of D (K, m + labels) are atoms, on the sphere; the others, a classifier, stay.
    """
    m = len(curves)
    E = X - Z @ D
    for k in range(len(D)):
        users = np.flatnonzero(Z[:, k])
        if not len(users):
            continue
        z, d = Z[users, k], D[k]
        left = E[users] + np.outer(z, d)
        d[:m] = solve_sphere(left[:, :m].T @ z, curves, d[:m])
        system = M[np.ix_(users, users)]
        system[np.diag_indices_from(system)] += d @ d
        z = linalg.solve(system, left @ d, assume_a="pos")
        Z[users, k], E[users] = z, left - np.outer(z, d)


def solve_sphere(g: Array, curves: Array, old: Array) -> Array:
    """The d (m,) of unit norm with the least sum_f curves_f d_f^2 - 2 g d, for curves of at least 0; `old` if g is 0.

    d = g / (curves + nu), with the largest nu for which it has unit norm.
    """
    length = float(np.linalg.norm(g))
    if length <= 1e-12:
        return old
    low, high = length - float(curves.max()), length - float(curves.min())
    low = max(low, -float(curves.min()) + 1e-12)
    for _ in range(100):
        nu = (low + high) / 2.0
        if np.linalg.norm(g / (curves + nu)) > 1.0:
            low = nu
        else:
            high = nu
        if high - low <= 1e-14 * length:
            break
    d = g / (curves + high)
    return np.asarray(d / np.linalg.norm(d))

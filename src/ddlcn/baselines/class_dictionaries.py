"""The common parts of FDDL, LRSDL and DL-COPAR: class dictionaries, sparse codes over them, and the atom update.

A dictionary D (K, m) holds the atoms of class 0, then those of class 1, and so on, then the atoms that all classes
share; `labels` (K,) holds the class of each atom, `SHARED` for the last. With everything else fixed, the objective of
each of these methods is, for one image,

    1/2 z H z^T - z b^T + alpha ||z||_1            (z, b: (K,), H: (K, K))

with an H that all images of a class have in common, and, for the atoms,

    1/2 tr(F D D^T) - tr(E D^T)                    over rows of norm at most one (F: (K, K), E: (K, m)).

`code_rows` solves the first, `step_atoms` lowers the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import Tags

from ddlcn.baselines.base import Labels, VectorBaseline
from ddlcn.baselines.components import find_components
from ddlcn.engines.compile import kernel
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]
SHARED = -1
ROWS = 64  # images per piece of work for a thread


def start_dictionary(X: Array, y: Labels, atoms_per_class: int | None, n_shared: int) -> tuple[Array, Labels]:
    """Atoms (K, m) to start from, and their labels (K,): of each class, and then of all images (n, m), the mean and
    the first principal components, as FDDL's authors do.

    A class gets as many atoms as it has images if `atoms_per_class` is None or more than that.
    """
    atoms, labels = [], []
    for c in range(int(y.max()) + 1):
        members = X[y == c]
        atoms.append(span(members, min(atoms_per_class or len(members), len(members))))
        labels += [c] * len(atoms[-1])
    if n_shared:
        atoms.append(span(X, min(n_shared, len(X))))
        labels += [SHARED] * len(atoms[-1])
    return np.concatenate(atoms), np.array(labels, np.intp)


def span(X: Array, n_atoms: int) -> Array:
    """The mean of rows X (n, m) and their first components, of unit norm: at most n_atoms rows, at least one."""
    mean: Array = normalize(X.mean(axis=0, keepdims=True))
    if n_atoms == 1 or not np.ptp(X, axis=0).any():
        return mean
    return np.concatenate([mean, find_components(X, n_atoms - 1)[1]])


def alternate(
    code: Callable[[Array, Array], Array],
    step: Callable[[Array, Array], Array],
    measure: Callable[[Array, Array], float],
    D: Array,
    Z: Array,
    max_iter: int,
    tol: float,
) -> tuple[Array, Array, Array]:
    """Codes by code(D, Z), atoms by step(D, Z), in turn: D, Z, and the objective measure(D, Z) after each round.

    At most `max_iter` rounds; ends when a round lowers the objective by no more than `tol` of it.
    """
    history: list[float] = []
    for _ in range(max_iter):
        Z = code(D, Z)
        D = step(D, Z)
        history.append(measure(D, Z))
        if len(history) > 1 and history[-2] - history[-1] <= tol * history[-2]:
            break
    return D, Z, np.array(history)


class ClassDictionaries(VectorBaseline):
    """A baseline that discriminates classes by the subspaces that their atoms span."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # scikit-learn's two-dimensional data: two atoms span the plane
        return tags


def own_atoms(y: Labels, labels: Labels) -> Array:
    """(n, K): 1 where the atom is of the image's class, else 0."""
    return np.asarray(y[:, None] == labels, np.float64)


def same_class(labels: Labels) -> Array:
    """(K, K): 1 where two atoms are of one class, or both shared, else 0."""
    return np.asarray(labels[:, None] == labels, np.float64)


def code_classes(
    systems: Callable[[int], Array], B: Array, y: Labels, alpha: float, Z: Array, n_jobs: int | None
) -> Array:
    """Codes (n, K) of images with linear terms B (n, K), where `systems(c)` is class c's H (K, K); Z is the start."""
    out = np.empty_like(Z)

    def work(c: int) -> None:
        rows = np.flatnonzero(y == c)
        codes = Z[rows]
        code_rows(systems(c), B[rows], alpha, codes)
        out[rows] = codes

    for _ in map_threads(work, range(int(y.max()) + 1), n_jobs):
        pass
    return out


def code_images(H: Array, B: Array, alpha: float, n_jobs: int | None) -> Array:
    """Codes (n, K) of images with linear terms B (n, K) and one H (K, K), from zero."""
    Z = np.zeros_like(B)
    starts = range(0, len(B), ROWS)
    for _ in map_threads(lambda s: code_rows(H, B[s : s + ROWS], alpha, Z[s : s + ROWS]), starts, n_jobs):
        pass
    return Z


@kernel
def code_rows(H: Array, B: Array, alpha: float, Z: Array) -> None:
    """Lower 1/2 z H z^T - z b^T + alpha ||z||_1 to its minimum, for each row z of Z, in place.

    Coordinate descent on a working set: the nonzero coordinates and the few with the largest violation of the
    optimality conditions. The others cost nothing until those have converged.

    Parameters
    ----------
    H : ndarray (K, K), positive semi-definite
    B, Z : ndarrays (n, K)
    """
    n, K = B.shape
    # With 600 face atoms, the objective ends a relative 4e-6 above its minimum; 1e-3 takes twice as long.
    tolerance = 1e-2 * alpha + 1e-12
    gradient, excess = np.empty(K), np.empty(K)
    active = np.empty(K, np.int64)
    for i in range(n):
        z = Z[i]
        for k in range(K):
            gradient[k] = -B[i, k]
        for k in range(K):
            if z[k] != 0.0:
                for j in range(K):
                    gradient[j] += z[k] * H[k, j]
        for _ in range(100):  # rounds; a handful is usual
            n_active, n_more, worst, worst_zero = 0, 0, 0.0, 0.0
            for k in range(K):
                if z[k] != 0.0:
                    active[n_active] = k
                    n_active += 1
                    worst = max(worst, abs(gradient[k] + (alpha if z[k] > 0.0 else -alpha)))
                elif H[k, k] > 0.0 and abs(gradient[k]) - alpha > tolerance:
                    excess[n_more] = abs(gradient[k])
                    n_more += 1
                    worst_zero = max(worst_zero, abs(gradient[k]) - alpha)
            worst = max(worst, worst_zero)
            if worst <= tolerance:
                break
            # Add about as many again: those above a threshold found by bisection.
            room, least, most = max(10, n_active), alpha + tolerance, alpha + worst_zero
            for _ in range(10 if n_more > room else 0):
                middle, count = (least + most) / 2, 0
                for k in range(n_more):
                    count += excess[k] >= middle
                if count > room:
                    least = middle
                else:
                    most = middle
            least = most if n_more > room else least
            for k in range(K):
                if z[k] == 0.0 and H[k, k] > 0.0 and abs(gradient[k]) >= least:
                    active[n_active] = k
                    n_active += 1
            # H and the gradient on the working set, contiguous in memory.
            part, slope, before = np.empty((n_active, n_active)), np.empty(n_active), np.empty(n_active)
            for a in range(n_active):
                slope[a], before[a] = gradient[active[a]], z[active[a]]
                for b in range(n_active):
                    part[a, b] = H[active[a], active[b]]
            now = before.copy()
            enough = max(0.3 * tolerance, 0.1 * worst)  # early rounds need not be exact
            for _ in range(300):  # sweeps
                moved = 0.0
                for a in range(n_active):
                    curve = part[a, a]
                    aim = curve * now[a] - slope[a]
                    new = 0.0
                    if aim > alpha:
                        new = (aim - alpha) / curve
                    elif aim < -alpha:
                        new = (aim + alpha) / curve
                    change = new - now[a]
                    if change != 0.0:
                        now[a] = new
                        moved = max(moved, abs(change) * curve)
                        for b in range(n_active):
                            slope[b] += change * part[a, b]
                if moved <= enough:
                    break
            for a in range(n_active):
                k = active[a]
                change = now[a] - before[a]
                z[k] = now[a]
                if change != 0.0:
                    for j in range(K):
                        gradient[j] += change * H[k, j]


def step_atoms(D: Array, F: Array, E: Array, labels: Labels, n_sweeps: int = 5) -> Array:
    """A D that lowers 1/2 tr(F D D^T) - tr(E D^T), rows of norm at most one: atom after atom, each set to its minimum.

    Parameters
    ----------
    D, E : ndarrays (K, m)
    F : ndarray (K, K), positive semi-definite
    labels : ndarray (K,)
        Atoms of one class are updated one after another; the other classes' gradients once per class.
    """
    D = D.copy()
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for _ in range(n_sweeps):
        for group in groups:
            atoms, pull = D[group], E[group] - F[group] @ D  # pull: minus the gradient
            settle(atoms, pull, F[np.ix_(group, group)])
            D[group] = atoms
    return D


@kernel
def settle(atoms: Array, pull: Array, F: Array) -> None:
    """Three sweeps over atoms (k, m) of one class with minus the gradient `pull` (k, m) and F (k, k), in place."""
    k, m = atoms.shape
    change = np.empty(m)
    for _ in range(3):
        for a in range(k):
            if F[a, a] <= 1e-12:  # an unused atom is not changed
                continue
            norm = 0.0
            for j in range(m):
                change[j] = atoms[a, j] + pull[a, j] / F[a, a]
                norm += change[j] ** 2
            norm = max(1.0, np.sqrt(norm))
            for j in range(m):
                new = change[j] / norm
                change[j] = new - atoms[a, j]
                atoms[a, j] = new
            for b in range(k):
                weight = F[a, b]
                for j in range(m):
                    pull[b, j] -= weight * change[j]


def step_low_rank(D: Array, F: Array, E: Array, eta: float) -> Array:
    """A D (k, m) that lowers 1/2 tr(F D D^T) - tr(E D^T) + eta ||D||_*, rows of norm at most one.

    By ADMM, as in LRSDL's paper: one copy of D has bounded rows, the other low rank, and their difference is penalised.
    The best of the first kind is returned, so that the objective never increases.
    """
    one = np.zeros(len(D), np.intp)
    best = short = low = D
    apart = np.zeros_like(D)

    def measure(D: Array) -> float:
        return float((F * (D @ D.T)).sum() / 2 - (E * D).sum() + eta * np.linalg.norm(D, "nuc"))

    least = measure(D)
    rho = max(float(np.trace(F)) / len(F), 1e-12)  # of the size of the data term on an atom
    for _ in range(30):
        short = step_atoms(short, F + rho * np.eye(len(F)), E + rho * (low - apart), one, n_sweeps=2)
        before, low = low, shrink_rank(short + apart, eta / rho)
        apart = apart + short - low
        now = measure(short)
        if now < least:
            best, least = short, now
        if max(np.abs(short - low).max(), np.abs(low - before).max()) < 1e-5:
            break
    return best


def shrink_rank(A: Array, threshold: float) -> Array:
    """The J with the least 1/2 ||J - A||^2 + threshold ||J||_*, A (k, m): each singular value is cut by `threshold`."""
    U, s, V = np.linalg.svd(A, full_matrices=False)
    return np.asarray((U * np.maximum(s - threshold, 0.0)) @ V)

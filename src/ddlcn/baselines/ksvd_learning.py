"""K-SVD (Aharon et al. 2006) with the approximate update of Rubinstein et al. (2008), and labels beside the data.

    min_{D, Z}  ||X - Z D||^2     subject to  at most `n_nonzero` entries per row of Z, atoms of unit norm

Codes by orthogonal matching pursuit, then atom by atom: one step of the power iteration of the atom and its codes (in
the rows that use it) towards the best rank-one fit of the residual without them. One step minimises over the atom and
then over its codes, so no update raises the objective; the greedy pursuit may.

Labels (Zhang & Li 2010, Jiang et al. 2011): K-SVD of rows [x, sqrt(w_c) h] with h the one-hot label of class c.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.preprocessing import normalize

from ddlcn.coding.omp import encode_omp, iter_blocks, pursue, pursue_products
from ddlcn.engines.compile import kernel
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]
# Differs from the paper: the atoms are updated twice for every coding (Smith & Elad 2013). An update takes an eighth
# of the time of coding; on Extended Yale B, the objective after 50 iterations is 5 % lower than with one update.
# Accepting a new code only if its residual is smaller would make the objective monotone, but it ends 10 % higher.
UPDATES = 2
# Atoms of unit norm whose pixels have a norm below this: the pixels are rounding.
MIN_NORM = 1e-12


def learn_ksvd(
    X: Array, start: Array, n_nonzero: int, n_iter: int, n_jobs: int | None = None
) -> tuple[Array, list[float]]:
    """K-SVD from a dictionary `start` (atoms, m), rows of unit norm, on X (n, m).

    Returns the dictionary (atoms, m) and ||X - Z D||^2 after every iteration.
    """
    D = np.array(start, np.float64)
    E = np.empty(X.shape)  # X - Z D
    width = min(n_nonzero, len(D))
    columns, values = np.empty((len(X), width), np.int32), np.empty((len(X), width))
    counts = np.empty(len(X), np.int32)
    objective = []
    for _ in range(n_iter):
        gram = D @ D.T

        def code(rows: slice, gram: Array = gram) -> None:
            columns[rows], values[rows], counts[rows] = pursue(X[rows], D, gram, width)
            _subtract(X[rows], D, columns[rows], values[rows], counts[rows], E[rows])

        for _ in map_threads(code, iter_blocks(len(X)), n_jobs):
            pass
        for _ in range(UPDATES):
            _update_atoms(X, E, D, columns, values, counts)
        objective.append(float(np.einsum("ij,ij->", E, E)))
    return D, objective


@kernel
def _subtract(X: Array, D: Array, columns: Array, values: Array, counts: Array, E: Array) -> None:
    """E = X - Z D."""
    n_items, m = X.shape
    for i in range(n_items):
        left = E[i]
        left[:] = X[i]
        for q in range(counts[i]):
            value, atom = values[i, q], D[columns[i, q]]
            for f in range(m):
                left[f] -= value * atom[f]


@kernel
def _update_atoms(X: Array, E: Array, D: Array, columns: Array, values: Array, counts: Array) -> None:
    """One pass over the atoms: D, the values of the codes, and E = X - Z D change in place."""
    n_items, m = E.shape
    n_atoms = len(D)
    # Entries of the codes by atom: `item` and `slot` of those of atom j lie from ends[j - 1] to ends[j].
    ends = np.zeros(n_atoms + 1, np.int64)
    for i in range(n_items):
        for q in range(counts[i]):
            ends[columns[i, q] + 1] += 1
    for j in range(n_atoms):
        ends[j + 1] += ends[j]
    item, slot = np.empty(ends[n_atoms], np.int32), np.empty(ends[n_atoms], np.int32)
    place = ends.copy()
    for i in range(n_items):
        for q in range(counts[i]):
            j = columns[i, q]
            item[place[j]], slot[place[j]] = i, q
            place[j] += 1

    squares = np.empty(0)  # of the residual of each item; computed when an atom is unused
    atom = np.empty(m)
    for j in range(n_atoms):
        old = D[j]
        if ends[j] == ends[j + 1]:
            # Replaced by the item with the largest residual, each item once.
            if len(squares) == 0:
                squares = np.empty(n_items)
                for i in range(n_items):
                    squares[i] = 0.0
                    for f in range(m):
                        squares[i] += E[i, f] * E[i, f]
            worst = np.argmax(squares)
            length = 0.0
            for f in range(m):
                length += X[worst, f] * X[worst, f]
            if squares[worst] > 1e-12 * length and length > 0.0:
                old[:] = X[worst] / np.sqrt(length)
            squares[worst] = 0.0
            continue
        # The best atom for its codes g: (E + g old)^T g.
        atom[:] = 0.0
        weight = 0.0
        for p in range(ends[j], ends[j + 1]):
            row, value = E[item[p]], values[item[p], slot[p]]
            weight += value * value
            for f in range(m):
                atom[f] += value * row[f]
        length = 0.0
        for f in range(m):
            atom[f] += weight * old[f]
            length += atom[f] * atom[f]
        if length <= 1e-300:
            continue
        length = np.sqrt(length)
        product = 0.0
        for f in range(m):
            atom[f] /= length
            product += atom[f] * old[f]
        # The best codes for it, (E + g old) atom, and their residuals.
        for p in range(ends[j], ends[j + 1]):
            row, value = E[item[p]], values[item[p], slot[p]]
            new = product * value
            for f in range(m):
                new += row[f] * atom[f]
            for f in range(m):
                row[f] += value * old[f] - new * atom[f]
            values[item[p], slot[p]] = new
        old[:] = atom


def start_by_class(
    X: Array,
    y: Array,
    atoms_per_class: int,
    n_nonzero: int,
    n_iter: int,
    seeds: list[np.random.SeedSequence],
    n_jobs: int | None = None,
) -> tuple[Array, Array]:
    """A dictionary (atoms, m) learned class by class, and the class of every atom (atoms,).

    A class has at most as many atoms as nonzero images; a class of zero images only has one random atom, so that every
    class has one. `seeds` has one for each class.
    """

    def learn(c: int) -> Array:
        rng = np.random.default_rng(seeds[c])
        members = X[y == c]
        members = members[np.linalg.norm(members, axis=1) > 0]
        if len(members) == 0:
            members = rng.normal(size=(1, X.shape[1]))
        first = rng.permutation(len(members))[:atoms_per_class]
        return learn_ksvd(members, normalize(members[first]), n_nonzero, n_iter, n_jobs=1)[0]

    parts = list(map_threads(learn, range(len(seeds)), n_jobs))
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def improve_code(z: Array, H: Array, b: Array, square: float, n_nonzero: int) -> None:
    """A code z (atoms,) by orthogonal matching pursuit for z H z^T - 2 z b^T + square, in place, if it is lower."""
    columns, values, counts = pursue_products(H, b[None].copy(), np.array([square]), min(n_nonzero, len(H)))
    new, v, old = columns[0, : counts[0]], values[0, : counts[0]], np.flatnonzero(z)
    now = z[old] @ (H[np.ix_(old, old)] @ z[old]) - 2.0 * z[old] @ b[old]
    if v @ (H[np.ix_(new, new)] @ v) - 2.0 * v @ b[new] < now:
        z[:] = 0.0
        z[new] = v


def fit_ridge(codes: Any, targets: Array, ridge: float) -> Array:
    """W (targets, atoms) of min ||T - Z W^T||^2 + ridge ||W||^2, for codes Z (n, atoms) and targets T (n, targets)."""
    gram = (codes.T @ codes).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    solution: Array = linalg.solve(gram, codes.T @ targets, assume_a="pos")
    return solution.T


def learn_with_labels(
    X: Array,
    start: Array,
    targets: Array,
    weights: Array,
    n_nonzero: int,
    ridge: float,
    n_iter: int,
    n_jobs: int | None = None,
) -> tuple[Array, Array, list[float]]:
    """K-SVD of rows [x, sqrt(w) h], for one-hot targets H (n, n_classes) and one weight w (n_classes,) per class.

    Minimises ||X - Z D||^2 + sum_c w_c ||h_c - Z W_c^T||^2 from D = `start` and W by ridge regression on its codes.
    Returns D (atoms, m) and W (n_classes, atoms), both divided by the norm of D's rows, and the objective after every
    iteration.
    """
    m, roots = X.shape[1], np.sqrt(weights)
    W = fit_ridge(encode_omp(X, start, n_nonzero, n_jobs=n_jobs), targets, ridge)
    stacked, objective = learn_ksvd(
        np.hstack([X, targets * roots]), normalize(np.hstack([start, W.T * roots])), n_nonzero, n_iter, n_jobs
    )
    lengths = np.linalg.norm(stacked[:, :m], axis=1, keepdims=True)
    # An atom without pixels (from zero images) can never be selected for an image: it becomes zero.
    stacked = np.where(lengths > MIN_NORM, stacked / np.maximum(lengths, MIN_NORM), 0.0)
    return np.ascontiguousarray(stacked[:, :m]), (stacked[:, m:] / roots).T, objective

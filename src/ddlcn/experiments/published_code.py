"""Codes as the authors' published MATLAB code has them, beside the paper's: for experiments only (docs/method.md 2.4).

It differs from the paper in four ways. Layer 1 solves

    min_z  1/2 ||x - z V||^2 + lambda sum_j w_j |z_j|      w_j = 10 / d(x, v_j) for the 15 nearest atoms, else 0.01

so nearness is punished, not distance; d is the norm of the *squared* differences; the codes need not sum to one; and
the path of solutions is left after 15 atoms, however large lambda still is. Layer 2 codes every atom of layer 1 in the
same way (10 nearest, 10 atoms), and its block of a descriptor's code, z_j gamma_j, is laid out by the *rank* of j among
the active atoms: 15 D_2 columns that mean another atom in every descriptor. So it is no fixed weight of a layer-1
column. Where a code has fewer than 15 nonzeros, that block shows the first 15 atoms of the dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding import CodeBlock
from ddlcn.engines.compile import kernel
from ddlcn.engines.cpu.lasso import append_atom, drop_atom, solve_factored

Array = NDArray[Any]

# The published code's numbers.
LAMBDA = 0.15
NEAR, FAR = 10.0, 0.01  # weights: NEAR / distance, or FAR
N_LAYER1, N_LAYER2 = 15, 10  # nearest atoms, and most nonzeros


class RankedCoder:
    """One or two layers of the published code, with the interface of a coder.

    Parameters
    ----------
    dictionaries : sequence of one or two ndarrays (D_l, m)
        Where layer 1 has 15 atoms or fewer, or layer 2 has 10 or fewer, all but one are used.
    """

    def __init__(self, dictionaries: Sequence[Array]) -> None:
        if len(dictionaries) > 2:
            raise ValueError(f"the published code has one or two layers; got {len(dictionaries)}")
        atoms = np.asarray(dictionaries[0], np.float64)
        self._atoms, self._gram = atoms, atoms @ atoms.T
        self.n_dimensions, self.dtype = atoms.shape[1], dictionaries[0].dtype
        self.n_atoms = len(atoms)
        self._deep: tuple[Array, Array] | None = None
        if len(dictionaries) == 2:
            upper = np.asarray(dictionaries[1], np.float64)
            self._n_deep, self._n_ranks = len(upper), min(N_LAYER1, len(atoms) - 1)
            self._deep = encode_weighted(atoms, upper, upper @ upper.T, N_LAYER2)[:2]
            self.n_atoms += self._n_ranks * len(upper)

    def encode_block(self, X: Array) -> CodeBlock:
        """Code descriptors X (n, m)."""
        columns, values, counts = encode_weighted(np.asarray(X, np.float64), self._atoms, self._gram, N_LAYER1)
        if self._deep is not None:
            # Every descriptor has all entries; those of atoms that are not there are zero.
            filled = np.arange(self._n_ranks) < counts[:, None]
            values[~filled], columns[~filled] = 0.0, 0
            deep_columns, deep_values = self._append(columns, values, counts)
            columns, values = np.hstack([columns, deep_columns]), np.hstack([values, deep_values])
            counts = np.full(len(X), columns.shape[1])
        return CodeBlock(columns.astype(np.int32), values, counts.astype(np.int32), np.zeros(len(X)))

    def _append(self, columns: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Columns and values (n, ranks * nonzeros of layer 2) of the second block."""
        assert self._deep is not None
        gamma_columns, gamma_values = self._deep
        order = np.argsort(columns, axis=1, kind="stable")
        active, z = np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
        for i in np.flatnonzero(counts != self._n_ranks).tolist():
            code = dict(zip(columns[i, : counts[i]].tolist(), values[i, : counts[i]].tolist(), strict=True))
            active[i] = np.arange(self._n_ranks)
            z[i] = [code.get(j, 0.0) for j in range(self._n_ranks)]
            if not z[i].any():
                z[i] = 1.0
        at = len(self._atoms) + np.arange(self._n_ranks)[:, None] * self._n_deep + gamma_columns[active]
        return at.reshape(len(at), -1), (z[:, :, None] * gamma_values[active]).reshape(len(at), -1)


def encode_weighted(X: Array, D: Array, gram: Array, n_nonzero: int) -> tuple[Array, Array, Array]:
    """Codes of X (n, m) over atoms D (atoms, m): columns and values (n, width), and how many are filled (n,).

    The width is `n_nonzero`, or one less than there are atoms.
    """
    n_nonzero = min(n_nonzero, len(D) - 1)
    weights = np.full((len(X), len(D)), FAR)
    distances = measure_distances(X, D)
    nearest = np.argpartition(distances, n_nonzero, axis=1)[:, :n_nonzero]
    near = NEAR / np.maximum(np.take_along_axis(distances, nearest, axis=1), 1e-12)
    np.put_along_axis(weights, nearest, near, axis=1)
    columns, values = np.zeros((len(X), n_nonzero), np.int64), np.zeros((len(X), n_nonzero))
    counts = np.zeros(len(X), np.int64)
    follow_path(gram, X @ D.T, weights, LAMBDA, columns, values, counts)
    return columns, values, counts


def measure_distances(X: Array, D: Array) -> Array:
    """Norms (n, atoms) of the squared differences: the root of the sum of (x - v)^4."""
    fourth = np.einsum("ij,ij->i", X**2, X**2)[:, None] + np.einsum("ij,ij->i", D**2, D**2)[None]
    fourth += 6.0 * (X**2 @ (D**2).T) - 4.0 * (X**3 @ D.T) - 4.0 * (X @ (D**3).T)
    return np.asarray(np.sqrt(np.maximum(fourth, 0.0)))


@kernel
def follow_path(G: Any, H: Any, weights: Any, target: float, columns: Any, values: Any, counts: Any) -> None:
    """Least angle regression with the lasso's sign changes (Efron et al. 2004), from z = 0 towards lambda = `target`.

    Stops there, or where one more atom than there is room for would enter.

    Parameters
    ----------
    G : (atoms, atoms); H : (n, atoms)
        Inner products of the atoms, and of the descriptors with them.
    weights : (n, atoms)
        Of the penalty lambda sum_j w_j |z_j|.
    columns, values : (n, width); counts : (n,)
        Results.
    """
    n_atoms, width = G.shape[0], columns.shape[1]
    S, sign = np.empty(width + 1, np.int64), np.zeros(n_atoms)
    z, c, a = np.empty(n_atoms), np.empty(n_atoms), np.empty(n_atoms)
    L, step = np.empty((width + 1, width + 1)), np.empty(width + 1)
    for i in range(H.shape[0]):
        w = weights[i]
        z[:] = 0.0
        c[:] = H[i]
        level, enters, k = 0.0, -1, 0
        for j in range(n_atoms):
            if abs(c[j]) / w[j] > level:
                level, enters = abs(c[j]) / w[j], j
        for _ in range(8 * width):  # more turns only if atoms leave and enter again without end
            if level <= target:
                break
            if enters >= 0:
                if k == width:
                    break
                S[k] = enters
                sign[enters] = 1.0 if c[enters] > 0.0 else -1.0
                append_atom(L, G, S, k)
                k += 1
            for p in range(k):
                step[p] = w[S[p]] * sign[S[p]]
            solve_factored(L, k, step)
            a[:] = 0.0
            for p in range(k):
                row = G[S[p]]
                for j in range(n_atoms):
                    a[j] += step[p] * row[j]
            # How far: to the target, to an atom whose code becomes zero, or to one that catches up.
            length, leaves, enters = level - target, -1, -1
            for p in range(k):
                ratio = -z[S[p]] / step[p]
                if 1e-15 < ratio < length:
                    length, leaves = ratio, p
            for j in range(n_atoms):
                if sign[j] != 0.0:
                    continue
                if w[j] - a[j] > 1e-15:
                    ratio = (level * w[j] - c[j]) / (w[j] - a[j])
                    if 1e-15 < ratio < length:
                        length, enters, leaves = ratio, j, -1
                if w[j] + a[j] > 1e-15:
                    ratio = (level * w[j] + c[j]) / (w[j] + a[j])
                    if 1e-15 < ratio < length:
                        length, enters, leaves = ratio, j, -1
            for p in range(k):
                z[S[p]] += length * step[p]
            for j in range(n_atoms):
                c[j] -= length * a[j]
            level -= length
            if leaves >= 0:
                z[S[leaves]] = 0.0
                sign[S[leaves]] = 0.0
                drop_atom(L, S, k, leaves)
                k -= 1
            elif enters < 0:
                break
        counts[i] = k
        for p in range(k):
            columns[i, p], values[i, p] = S[p], z[S[p]]
            sign[S[p]] = 0.0

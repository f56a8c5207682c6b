"""Sparse coding with an l1 penalty (the lasso; Tibshirani 1996): descriptors and atoms in, codes and duality gaps out.

    min_z  1/2 ||x - z D||^2 + alpha ||z||_1

Everything happens among inner products: h = D x and G = D D^T are all that is needed once ||x||^2 is known. The atoms
that violate the optimality conditions most join a small working set, on which an active-set method solves the problem
(feature-sign search, Lee et al. 2007): the worst atom enters the support S, G_SS z_S = h_S - alpha sign(z_S) is solved
by a Cholesky factor that is kept up to date, and an atom whose code would change its sign on the way leaves. Then the
conditions are checked on all atoms, and so on. Coordinate descent crawls where atoms look alike (50 times slower on
1,216 faces, alpha = 0.001); this does not. A code of several hundred nonzeros is begun by `lasso_blocks`, which
exchanges many atoms at a time.

`encode_lasso` is the public function; `LassoCoder` holds what a dictionary needs to be prepared once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ddlcn._threads import map_threads
from ddlcn._validation import check_matrix, check_number
from ddlcn.coding.lasso_blocks import start_long
from ddlcn.coding.locality import BLOCK, CodeBlock
from ddlcn.engines.compile import inlined, kernel

Array = NDArray[Any]


@dataclass(frozen=True)
class LassoResult:
    """What `encode_lasso` returns.

    Attributes
    ----------
    codes : scipy.sparse.csr_array (n, atoms), float64
    gap : ndarray (n,)
        The certificate: objective less its dual bound, divided by the objective at z = 0 (by 1 where that is 0). No
        code is better by more.
    converged : bool
        Whether every certificate is within `tol`.
    """

    codes: Any
    gap: NDArray[np.float64]
    converged: bool


class LassoCoder:
    """A dictionary prepared for sparse coding. The Gram matrix takes 8 atoms^2 bytes.

    Parameters
    ----------
    atoms : ndarray (atoms, m)
    alpha : float
        Weight of the l1 norm, above 0.
    tol : float
        Bound on the relative duality gap.
    """

    def __init__(self, atoms: Array, alpha: float, tol: float = 1e-6) -> None:
        self.atoms = np.ascontiguousarray(atoms, np.float64)
        self.gram = self.atoms @ self.atoms.T
        self._alpha, self._tol = alpha, tol
        self.n_atoms, self.n_dimensions = self.atoms.shape
        # Some optimal code has no more nonzeros than dimensions; one more while an atom takes another's place.
        self.width = min(self.n_atoms, self.n_dimensions + 1)
        self.dtype = self.atoms.dtype

    def encode_dense(self, X: Array) -> tuple[Array, NDArray[np.float64]]:
        """Codes (n, atoms) and relative duality gaps (n,) of descriptors X (n, m), in the calling thread."""
        X = np.asarray(X, np.float64)
        Z, gap = np.zeros((len(X), self.n_atoms)), np.empty(len(X))
        H, squares = X @ self.atoms.T, np.einsum("ij,ij->i", X, X)
        how = (self.width, self._alpha, self._tol)
        solve_lasso(self.gram, H, squares, *how, LONG, Z, gap)
        long = np.flatnonzero(gap > self._tol)
        if len(long):
            starts = np.stack([start_long(self.gram, H[i], Z[i], self.width, self._alpha) for i in long])
            gaps = np.empty(len(long))
            solve_lasso(self.gram, H[long], squares[long], *how, self.n_atoms, starts, gaps)
            Z[long], gap[long] = starts, gaps
        return Z, gap

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), in the calling thread; `kkt` holds the gaps."""
        Z, gap = self.encode_dense(X)
        rows, atoms = np.divmod(np.flatnonzero(Z != 0.0), self.n_atoms)  # four times as quick as np.nonzero(Z)
        counts = np.bincount(rows, minlength=len(Z)).astype(np.int32)
        slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        indices, values = np.zeros((len(Z), self.width), np.int32), np.zeros((len(Z), self.width))
        indices[rows, slots], values[rows, slots] = atoms, Z[rows, atoms]
        return CodeBlock(indices, values, counts, gap)


def encode_lasso(X: ArrayLike, D: ArrayLike, alpha: float, tol: float = 1e-6, n_jobs: int | None = None) -> LassoResult:
    """Code every descriptor over the atoms of a dictionary, exactly, with a certificate.

    Parameters
    ----------
    X : array (n, m)
        Descriptors, one per row.
    D : array (atoms, m)
        Atoms, one per row, of any length.
    alpha : float
        Weight of the l1 norm, above 0.
    tol : float, default 1e-6
        Bound on the duality gap, in parts of the objective at z = 0, which is 1/2 ||x||^2.
    n_jobs : int, optional
        Threads; None means all cores. The codes do not depend on it.

    Returns
    -------
    LassoResult
        `.codes` (n, atoms) CSR, `.gap` (n,), `.converged`.
    """
    atoms = check_matrix("D", D, "atom")
    descriptors = check_matrix("X", X, "descriptor", n_columns=atoms.shape[1])
    tol = check_number("tol", tol, above=True)
    coder = LassoCoder(atoms, check_number("alpha", alpha, above=True), tol)

    def encode(start: int) -> tuple[Any, NDArray[np.float64]]:
        Z, gap = coder.encode_dense(descriptors[start : start + BLOCK])
        return sparse.csr_array(Z), gap

    codes, gaps = zip(*map_threads(encode, range(0, len(descriptors), BLOCK), n_jobs), strict=True)
    gap = np.concatenate(gaps)
    return LassoResult(sparse.vstack(codes, format="csr"), gap, bool(np.all(gap <= tol)))


# Atoms that join the working set at once, at least; else half as many as it has. SIFT over 1,024 atoms (alpha = 0.15,
# 9 nonzeros) then needs 2.7 checks of all atoms; with 10 or 40 it takes no less time.
N_JOIN = 20
# Violations below this part of alpha are rounding.
SLACK = 1e-9
# A pivot of Cholesky's below this part of the atom's squared length is raised to it: the atom depends on the others.
LEAST_PIVOT = 1e-10
# From so many nonzeros on, exchanging one atom at a time is slower than many: 4 times with 1,010 atoms and 520
# nonzeros, 12 times with 2,020 atoms and 920 nonzeros.
LONG = 128
# Bounds that only degenerate problems reach; the gap tells.
MAX_CHECKS, MAX_STEPS = 200, 20


@inlined
def append_atom(L: Any, G: Any, S: Any, k: int) -> None:
    """Cholesky's factor L (k, k) of G_SS gets a row for the atom S[k]."""
    row = G[S[k]]
    rest = row[S[k]]
    for a in range(k):
        value = row[S[a]]
        for t in range(a):
            value -= L[a, t] * L[k, t]
        L[k, a] = value / L[a, a]
        rest -= L[k, a] * L[k, a]
    L[k, k] = np.sqrt(max(rest, LEAST_PIVOT * row[S[k]]))


@inlined
def drop_atom(L: Any, S: Any, k: int, p: int) -> None:
    """The atom S[p] leaves: its row is taken out of L (k, k), and rotations make L triangular again."""
    for a in range(p, k - 1):
        S[a] = S[a + 1]
        for t in range(a + 2):
            L[a, t] = L[a + 1, t]
    for q in range(p, k - 1):
        length = np.sqrt(L[q, q] * L[q, q] + L[q, q + 1] * L[q, q + 1])
        cosine, sine = L[q, q] / length, L[q, q + 1] / length
        L[q, q] = length
        for a in range(q + 1, k - 1):
            left, right = L[a, q], L[a, q + 1]
            L[a, q] = cosine * left + sine * right
            L[a, q + 1] = cosine * right - sine * left


@inlined
def solve_factored(L: Any, k: int, b: Any) -> None:
    """b (k,) becomes (L L^T)^-1 b."""
    for a in range(k):
        value = b[a]
        for t in range(a):
            value -= L[a, t] * b[t]
        b[a] = value / L[a, a]
    for a in range(k - 1, -1, -1):
        b[a] /= L[a, a]
        for t in range(a):
            b[t] -= L[a, t] * b[a]


@inlined
def measure_gap(h: Any, c: Any, z: Any, S: Any, k: int, square: float, alpha: float) -> float:
    """The relative duality gap: c scaled into the dual's box gives a bound from below."""
    largest, l1, zh, zc = 0.0, 0.0, 0.0, 0.0
    for j in range(c.shape[0]):
        largest = max(largest, abs(c[j]))
    for a in range(k):
        j = S[a]
        l1 += abs(z[j])
        zh += z[j] * h[j]
        zc += z[j] * c[j]
    left = max(square - zh - zc, 0.0)  # ||x - z D||^2
    s = 1.0 if largest <= alpha else alpha / largest
    gap = 0.5 * left + alpha * l1 - s * (square - zh) + 0.5 * s * s * left
    return max(gap, 0.0) / (0.5 * square if square > 0.0 else 1.0)


@kernel
def solve_lasso(
    G: Any, H: Any, squares: Any, width: int, alpha: float, tol: float, longest: int, Z: Any, gap: Any
) -> None:
    """Codes of many descriptors.

    Parameters
    ----------
    G : (atoms, atoms)
        Inner products of the atoms.
    H : (n, atoms)
        Inner products of descriptors and atoms.
    squares : (n,)
        Squared lengths of the descriptors.
    width : int
        Most nonzeros of a code.
    longest : int
        A code that gets more nonzeros than this is left as it is then, with a gap above `tol`.
    Z : (n, atoms)
        Where to begin: zero, or codes that are nearly right. The codes are written into it.
    gap : (n,)
        Gets the duality gaps, in parts of the objective at z = 0.
    """
    n_atoms = G.shape[0]
    inside = np.zeros(n_atoms, np.bool_)  # the working set, as a mask and as a list
    W, outside = np.empty(n_atoms, np.int64), np.empty(n_atoms)
    S, sign = np.empty(n_atoms, np.int64), np.zeros(n_atoms)  # the support, and the signs of its codes
    c = np.empty(n_atoms)  # h - G z: how every atom goes with what is left of x
    L, step = np.empty((width, width)), np.empty(width)
    for i in range(H.shape[0]):
        h, z = H[i], Z[i]
        c[:] = h
        k, n_work = 0, 0
        for j in range(n_atoms):
            if z[j] != 0.0:
                S[k], W[k], inside[j] = j, j, True
                sign[j] = 1.0 if z[j] > 0.0 else -1.0
                k += 1
                for t in range(n_atoms):
                    c[t] -= z[j] * G[j, t]
        n_work = k
        for check in range(MAX_CHECKS):
            gap[i] = measure_gap(h, c, z, S, k, squares[i], alpha)
            if gap[i] <= tol or k > longest:
                break
            if check == 0:
                for a in range(k):  # only now: a beginning that is right needs no factor
                    append_atom(L, G, S, a)
            n_outside = 0
            for j in range(n_atoms):
                if abs(c[j]) > alpha and not inside[j]:
                    outside[n_outside] = abs(c[j])
                    n_outside += 1
            n_join = min(max(N_JOIN, n_work // 2), n_outside)
            least = np.partition(outside[:n_outside], n_outside - n_join)[n_outside - n_join] if n_join > 0 else 0.0
            for j in range(n_atoms):
                if abs(c[j]) > alpha and abs(c[j]) >= least and not inside[j]:
                    W[n_work] = j
                    inside[j] = True
                    n_work += 1

            for turn in range(MAX_STEPS * (n_work + 1)):
                enters, most = -1, alpha * (1.0 + SLACK)
                for q in range(n_work):
                    j = W[q]
                    if abs(c[j]) > most and sign[j] == 0.0:
                        enters, most = j, abs(c[j])
                if enters >= 0 and k < width:
                    S[k] = enters
                    sign[enters] = 1.0 if c[enters] > 0.0 else -1.0
                    append_atom(L, G, S, k)
                    k += 1
                elif turn > 0:  # the first turn also mends what rounding did before c was computed afresh
                    break
                if k > longest:
                    break
                crossed = k > 0
                while crossed:
                    # Towards the solution on the support, until a code changes its sign: that atom leaves.
                    for a in range(k):
                        step[a] = c[S[a]] - alpha * sign[S[a]]
                    solve_factored(L, k, step)
                    length, first = 1.0, -1
                    for a in range(k):
                        j = S[a]
                        if sign[j] * (z[j] + step[a]) < 0.0 and -z[j] / step[a] < length:
                            length, first = -z[j] / step[a], a
                    for a in range(k):
                        j = S[a]
                        move = length * step[a]
                        z[j] += move
                        row = G[j]
                        for q in range(n_work):
                            c[W[q]] -= move * row[W[q]]
                    crossed = first >= 0
                    if crossed:
                        z[S[first]] = 0.0
                        sign[S[first]] = 0.0
                        drop_atom(L, S, k, first)
                        k -= 1

            c[:] = h  # until now right on the working set only, and rounded many times
            for a in range(k):
                row, value = G[S[a]], z[S[a]]
                for j in range(n_atoms):
                    c[j] -= value * row[j]
        for q in range(n_work):
            inside[W[q]] = False
        for a in range(k):
            sign[S[a]] = 0.0

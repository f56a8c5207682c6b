"""The exact solver of the lasso: an active set on a working set, in inner products only (see `ddlcn.coding.lasso`).

In: G = D D^T (atoms, atoms), H = X D^T (n, atoms), ||x||^2 (n,). Out: codes (n, atoms) and their duality gaps (n,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel

# Atoms that enter the working set at once, at least; else half as many as it has. SIFT over 1,024 atoms (alpha = 0.15,
# 9 nonzeros) then needs 2.7 checks of all atoms; 10 or 40 are no faster.
MIN_ENTER = 20
# Violations below this part of alpha are rounding.
SLACK = 1e-9
# A Cholesky pivot below this part of the atom's squared norm is raised to it: the atom depends on the others.
LEAST_PIVOT = 1e-10
# Bounds that only degenerate problems reach; the gap then shows it.
MAX_CHECKS, MAX_STEPS = 200, 20


@inlined
def append_atom(L: Any, G: Any, S: Any, k: int) -> None:
    """Append a row for the atom S[k] to the Cholesky factor L (k, k) of G_SS."""
    row = G[S[k]]
    pivot = row[S[k]]
    for a in range(k):
        value = row[S[a]]
        for t in range(a):
            value -= L[a, t] * L[k, t]
        L[k, a] = value / L[a, a]
        pivot -= L[k, a] * L[k, a]
    L[k, k] = np.sqrt(max(pivot, LEAST_PIVOT * row[S[k]]))


@inlined
def drop_atom(L: Any, S: Any, k: int, p: int) -> None:
    """Remove the atom S[p]: delete its row of L (k, k) and restore the triangle by Givens rotations."""
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
    """The relative duality gap: c, scaled to be dual feasible, gives the lower bound."""
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
        Squared norms of the descriptors.
    width : int
        Most nonzeros of a code.
    longest : int
        A code that gets more nonzeros than this is left unfinished, with a gap above `tol`.
    Z : (n, atoms)
        The start: zero, or nearly right codes. Overwritten with the codes.
    gap : (n,)
        Written: the duality gaps, relative to the objective at z = 0.
    """
    n_atoms = G.shape[0]
    inside = np.zeros(n_atoms, np.bool_)  # the working set, as a mask and as a list
    W, outside = np.empty(n_atoms, np.int64), np.empty(n_atoms)
    S, sign = np.empty(n_atoms, np.int64), np.zeros(n_atoms)  # the support, and the signs of its codes
    c = np.empty(n_atoms)  # h - G z: the correlation of every atom with the residual
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
                for a in range(k):  # only now: a start that is optimal needs no factor
                    append_atom(L, G, S, a)
            n_outside = 0
            for j in range(n_atoms):
                if abs(c[j]) > alpha and not inside[j]:
                    outside[n_outside] = abs(c[j])
                    n_outside += 1
            n_enter = min(max(MIN_ENTER, n_work // 2), n_outside)
            least = np.partition(outside[:n_outside], n_outside - n_enter)[n_outside - n_enter] if n_enter > 0 else 0.0
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
                elif turn > 0:  # the first turn also corrects rounding from before c was recomputed
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

            c[:] = h  # up to here updated on the working set only, with accumulated rounding
            for a in range(k):
                row, value = G[S[a]], z[S[a]]
                for j in range(n_atoms):
                    c[j] -= value * row[j]
        for q in range(n_work):
            inside[W[q]] = False
        for a in range(k):
            sign[S[a]] = 0.0

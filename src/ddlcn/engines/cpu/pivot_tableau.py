"""The tableau of a small coding problem: how every code and gradient responds to every other.

In: the squared distances d2 (k,), E (k, k) and weights w (k,) of `local_qp`. Out: T (k, k), q (k,), sign (k,), kept up
to date as atoms enter and leave the basis (those with a code).

q_j is the code of an atom in the basis and the gradient g_j - nu of any other; sign_j is that of its code, 0 outside
the basis. T_ij is the change of q_i when the code (or gradient) of j moves by one. T is symmetric within codes and
within gradients, skew between them. One principal pivot swaps an atom in or out. The multiplier nu of the sum-to-one
constraint is always in the basis and never read: its row is not kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined


@inlined
def padded(k: int) -> int:
    """k rounded up to whole vectors. Loops include the padding: remainder loops would cost more."""
    return (k + 7) // 8 * 8


@inlined
def make_workspace(k: int) -> Any:
    """Arrays for problems of up to k atoms: E, T (padded, padded); d2, w, q, sign, row, z, gradient (padded,)."""
    width = padded(k)
    return (
        np.zeros((width, width)), np.zeros((width, width)), np.zeros(width), np.zeros(width), np.zeros(width),
        np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width),
    )  # fmt: skip


@inlined
def start_tableau(E: Any, d2: Any, w: Any, k: int, first: int, T: Any, q: Any, sign: Any) -> None:
    """The tableau of the basis {first}, z = (0, .., 1, .., 0): all inner products relative to v_first."""
    width = padded(k)
    for i in range(k):
        e_i = E[i, first]
        for j in range(width):
            T[i, j] = 0.5 * (e_i + E[first, j] - E[i, j])
        T[i, first] = 1.0
    for j in range(width):
        T[first, j] = -1.0  # z_first = 1 - (all others)
        sign[j] = 0.0
        q[j] = 0.5 * (d2[j] - d2[first] - E[first, j]) - w[first]
    T[first, first] = 0.0
    q[first] = 1.0
    sign[first] = 1.0


@inlined
def pivot(T: Any, q: Any, k: int, p: int, sign: Any, row: Any) -> None:
    """Principal pivot on atom p: it changes sides (code <-> gradient)."""
    width = padded(k)
    inverse = 1.0 / T[p, p]
    q_p = q[p] * inverse
    same = sign[p] * sign[p]
    for j in range(width):
        side = 1.0 if sign[j] * sign[j] == same else -1.0
        q[j] -= side * T[p, j] * q_p
        row[j] = T[p, j] * inverse
    for i in range(k):  # over p too: cheaper than skipping it, and overwritten below
        factor = T[i, p]
        for j in range(width):
            T[i, j] -= factor * row[j]
        T[i, p] = factor * inverse
    for j in range(width):
        T[p, j] = -row[j]
    T[p, p] = inverse
    q[p] = -q_p


@inlined
def extend_tableau(E: Any, d2: Any, k: int, n_known: int, w: Any, T: Any, q: Any, sign: Any, z: Any, row: Any) -> None:
    """Add atoms n_known .. k - 1 to the tableau of a basis, atoms 0 .. n_known - 1.

    Moving one unit of code from atom f of the basis to atom a changes the basis' gradients by s = (E_f - E_a) / 2 (up
    to a constant, which T ignores: its rows sum to zero), and the codes respond by T s.
    """
    width, f = padded(k), 0
    for b in range(n_known):
        f = b if abs(z[b]) > abs(z[f]) else f
    for j in range(k, width):
        sign[j] = 0.0  # left over from larger problems
    level = -sign[f] * w[f] - 0.5 * d2[f]  # (d2 - E z) / 2 + level = g - nu
    for b in range(n_known):
        level += 0.5 * z[b] * E[f, b]
    for a in range(n_known, k):
        gradient = level + 0.5 * d2[a]
        for j in range(width):
            row[j] = 0.0
        for b in range(n_known):
            s = 0.5 * (E[f, b] - E[a, b])
            gradient -= 0.5 * z[b] * E[a, b]
            for j in range(width):
                row[j] += s * T[b, j]
        row[f] += 1.0
        for b in range(n_known):
            T[a, b] = row[b]
            T[b, a] = -row[b]
        q[a] = gradient
        sign[a] = 0.0
        z[a] = 0.0
        for c in range(n_known, a + 1):
            response = E[f, a] - E[a, c]
            for b in range(n_known):
                response -= row[b] * (E[f, b] - E[c, b])
            T[a, c] = T[c, a] = 0.5 * response


@inlined
def keep_basis(indices: Any, k: int, space: Any) -> int:
    """Keep only the atoms of a solved problem's basis, in `indices` (k,) too; returns their number."""
    E, T, d2, _, q, sign, row, z, _ = space
    size, same = 0, k  # the first `same` stay where they are
    for i in range(k):  # row: their old positions
        if sign[i] != 0.0:
            row[size] = i
            indices[size], d2[size], sign[size], z[size], q[size] = indices[i], d2[i], sign[i], z[i], z[i]
            size += 1
        else:
            same = min(same, i)
    for a in range(size):
        i = int(row[a])
        for b in range(same if a < same else 0, size):
            j = int(row[b])
            E[a, b], T[a, b] = E[i, j], T[i, j]
    return size


@inlined
def restart_tableau(
    E: Any, d2: Any, w: Any, k: int, dependent: float, z: Any, T: Any, q: Any, sign: Any, row: Any
) -> int:
    """A fresh tableau with the basis of z, farthest from the hull first. Returns the size of the basis.

    Codes whose sign changes are removed again, so the basis may be smaller than z's.
    """
    first = 0
    for i in range(k):
        first = i if z[i] > z[first] else first
    start_tableau(E, d2, w, k, first, T, q, sign)
    n_basis = 1
    for _ in range(k):
        best, distance = -1, dependent
        for i in range(k):
            if sign[i] == 0.0 and z[i] != 0.0 and T[i, i] > distance:
                best, distance = i, T[i, i]
        if best < 0:
            break
        direction = 1.0 if z[best] > 0.0 else -1.0
        q[best] += direction * w[best]
        pivot(T, q, k, best, sign, row)
        sign[best] = direction
        n_basis += 1
    while n_basis > 1:
        worst, size = -1, 0.0
        for i in range(k):
            if w[i] > 0.0 and q[i] * sign[i] < size:
                worst, size = i, q[i] * sign[i]
        if worst < 0:
            break
        pivot(T, q, k, worst, sign, row)
        q[worst] -= sign[worst] * w[worst]
        sign[worst] = 0.0
        n_basis -= 1
    return n_basis

"""Codes in the l1 ball, exact, in a compiled kernel.

In come the Gram matrix G = V V^T of the atoms and the products H = X V^T of a batch of descriptors; out go,
as CSR, argmin_a 1/2 ||x - a V||^2 subject to ||a||_1 <= radius (DESIGN section 2, "Layer 1 dictionary").

The solver walks the lasso path. With c = h - a G, the solution for a multiplier lambda has c_j = lambda
sign(a_j) on its support S and |c_j| <= lambda elsewhere. It starts at a = 0, lambda = max |h|, and moves
along a_S += step * w, w = inv(G_SS) sign_S, which lowers lambda by `step` and keeps all |c_S| equal, until
the first of: an atom outside S reaches |c_j| = lambda (it enters), a coefficient reaches 0 (it leaves),
||a||_1 reaches the radius or lambda reaches 0 (done). Every point of the walk is feasible, and its objective is at most
lambda * radius above the minimum (the duality gap is lambda (radius - ||a||_1)), so stopping early is always safe: the
walk also ends where that is no more than `enough`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import called, inlined, kernel

Floats = NDArray[Any]

# Atoms per vectorised test "is any of these larger?" (16, 64 and 128 measured slower). LLVM vectorises `or`
# reductions but not `max`, 33 ns against 285 ns for 512 atoms: hence the scans below in two steps.
_BLOCK = 32

_FREE = 0  # may enter the support
_ACTIVE = 1  # is in the support
_BARRED = 2  # depends on the support (a duplicate, say): must wait until an atom leaves it

# An atom whose squared distance from the span of the support is below this part of its squared norm (or below
# the rounding of G) counts as dependent. Smaller, and the inverse in float64 loses most of its digits.
_DEPENDENT = 1e-11

_NOTHING = 1e-30  # a largest |h| below this is a zero descriptor
# Where exact ties (descriptors and atoms of small integers, say) lead the walk astray, it is repeated with h
# changed by at most this part of its largest entry: above float32's rounding, below any use of the codes.
_NUDGE = 5e-5


def code_tolerance(dtype: np.dtype[Any]) -> float:
    """What counts as zero, relative to the largest |h|, for G and H of this dtype: eight roundings."""
    return 8.0 * float(np.finfo(dtype).eps)


@inlined
def _any_outside(c: Floats, u: Floats, length: float, tube: float) -> bool:
    """Whether any |c - length * u| exceeds `tube`. (Counting from 0: else numba does not vectorise.)"""
    outside = False
    for j in range(c.size):
        outside |= abs(c[j] - length * u[j]) > tube
    return outside


@inlined
def _drop(inverse: Floats, size: int, k: int) -> None:
    """Remove item k of `size` from the inverse of a Gram matrix, in place; the last item takes its place."""
    last = size - 1
    if k != last:
        for q in range(size):
            inverse[k, q], inverse[last, q] = inverse[last, q], inverse[k, q]
        for p in range(size):
            inverse[p, k], inverse[p, last] = inverse[p, last], inverse[p, k]
    pivot = inverse[last, last]
    for p in range(last):
        factor = inverse[p, last] / pivot
        for q in range(last):
            inverse[p, q] -= factor * inverse[last, q]


@inlined
def _add(G: Floats, support: Any, inverse: Floats, size: int, j: int, tol: float, b: Floats, rest: Floats) -> bool:
    """Add atom j to the inverse of G on the support, in place; False if it depends on the support."""
    pivot = float(G[j, j])
    for p in range(size):
        b[p], rest[p] = 0.0, G[j, support[p]]
    for attempt in range(3):
        if attempt > 0:  # nearly dependent: the inverse, updated many times, may be too inexact to tell
            if pivot > 1e-3 * G[j, j]:
                break
            for p in range(size):
                rest[p] = G[j, support[p]]
                for q in range(size):
                    rest[p] -= G[support[p], support[q]] * b[q]
        pivot = float(G[j, j])
        for p in range(size):
            for q in range(size):
                b[p] += inverse[p, q] * rest[q]
            pivot -= b[p] * G[j, support[p]]
    if pivot <= max(tol, _DEPENDENT) * G[j, j]:
        return False
    for p in range(size):
        scaled = b[p] / pivot
        for q in range(size):
            inverse[p, q] += scaled * b[q]
        inverse[p, size] = -scaled
        inverse[size, p] = -scaled
    inverse[size, size] = 1.0 / pivot
    return True


@inlined
def _largest(h: Floats) -> float:
    """max |h|."""
    largest: float = h.dtype.type(0)
    for j in range(h.size):
        largest = max(largest, abs(h[j]))
    return largest


@called
def _polish(
    h: Floats, support: Any, signs: Floats, inverse: Floats, size: int, radius: float, a: Floats, b: Floats
) -> float:
    """Solve exactly on the final support (the walk adds up roundings); -1 if a sign breaks, else lambda."""
    along, rate = 0.0, 0.0
    for p in range(size):
        free, w = 0.0, 0.0
        for q in range(size):
            free += inverse[p, q] * h[support[q]]
            w += inverse[p, q] * signs[q]
        b[p] = free
        along += signs[p] * free
        rate += signs[p] * w
    multiplier = max((along - radius) / rate, 0.0)
    for p in range(size):
        for q in range(size):
            b[p] -= multiplier * inverse[p, q] * signs[q]
        if b[p] * signs[p] <= 0.0:
            return -1.0
    for p in range(size):
        a[p] = b[p]
    return multiplier


@called
def _walk(
    G: Floats,
    c: Floats,
    radius: float,
    tol: float,
    enough: float,
    state: Any,
    support: Any,
    solution: Any,
    scratch: Any,
) -> tuple[int, float, bool, bool]:
    """Walk the path from a = 0 with c = h, which it overwrites; fills the support and (signs, a, inverse).

    Returns the size of the support, lambda, whether the end was reached (or the objective is within `enough` of its
    minimum), and whether a step had no length: then several things happened at once, and may have been taken in a
    wrong order.
    """
    n_atoms, width, real = c.size, support.size, c.dtype.type
    signs, a, inverse = solution
    u, w, b = scratch
    first, top = -1, real(0)
    for start in range(0, n_atoms, _BLOCK):
        stop = min(start + _BLOCK, n_atoms)
        if _any_outside(c[start:stop], c[start:stop], real(0), top):
            for j in range(start, stop):
                if abs(c[j]) > top:
                    first, top = j, abs(c[j])
    size, multiplier, norm, enters = 0, float(top), 0.0, first
    slack = tol * multiplier
    barred, tied = False, False
    done = multiplier <= max(_NOTHING, enough / radius)
    for _ in range(8 * (width + n_atoms) + 32):  # descriptors take about as many as the support has atoms
        if done:
            break
        if enters >= 0:
            if size < width and _add(G, support, inverse, size, enters, tol, b, w):
                support[size], a[size] = enters, 0.0
                signs[size] = 1.0 if c[enters] > 0 else -1.0
                state[enters] = _ACTIVE
                size += 1
            else:
                state[enters], barred = _BARRED, True
                if size == 0:  # the atom is too short to have a norm: the code is 0
                    done = True
                    break
            enters = -1
        rate = 0.0
        for p in range(size):
            w[p] = 0.0
            for q in range(size):
                w[p] += inverse[p, q] * signs[q]
            rate += w[p] * signs[p]
        # How far: to the radius, to lambda = 0, or until a coefficient crosses zero.
        step, leaves, done = multiplier, -1, True
        if norm + step * rate > radius:
            step = max((radius - norm) / rate, 0.0)
        for p in range(size):
            if signs[p] * w[p] < 0.0 and -a[p] / w[p] < step:
                step, leaves, done = max(-a[p] / w[p], 0.0), p, False
        # ... or until an atom outside the support leaves the tube |c_j - step u_j| <= lambda - step.
        weight, row = real(w[0]), G[support[0]]
        for j in range(n_atoms):
            u[j] = weight * row[j]
        for p in range(1, size):
            weight, row = real(w[p]), G[support[p]]
            for j in range(n_atoms):
                u[j] += weight * row[j]
        for start in range(0, n_atoms, _BLOCK):
            stop = min(start + _BLOCK, n_atoms)
            tube = real(multiplier - step + slack)
            if not _any_outside(c[start:stop], u[start:stop], real(step), tube):
                continue
            for j in range(start, stop):
                at_end = c[j] - step * u[j]
                if state[j] == _FREE and abs(at_end) > multiplier - step + slack:
                    side = 1.0 if at_end > 0 else -1.0
                    crossing = (multiplier - side * c[j]) / (1.0 - side * u[j])
                    if crossing < step:
                        step, enters, leaves, done = max(crossing, 0.0), j, -1, False
        norm = 0.0
        for p in range(size):
            a[p] += step * w[p]
            norm += signs[p] * a[p]
        multiplier -= step
        done |= multiplier * radius <= enough
        if done:
            break
        tied |= step <= slack
        for j in range(n_atoms):
            c[j] -= real(step) * u[j]
        if leaves >= 0:
            if barred:  # what depended on the old support may be independent of the new one
                for j in range(n_atoms):
                    if state[j] == _BARRED:
                        state[j] = _FREE
                barred = False
            state[support[leaves]] = _FREE  # it moves inward now, and may come back on the other side
            _drop(inverse, size, leaves)
            size -= 1
            support[leaves], signs[leaves], a[leaves] = support[size], signs[size], a[size]
            done = size == 0
    for p in range(size):
        state[support[p]] = _FREE
    if barred:
        state[:] = _FREE
    return size, multiplier, done, tied


@called
def _holds(G: Floats, h: Floats, support: Any, a: Floats, size: int, multiplier: float, c: Floats) -> bool:
    """Whether |h - a G| <= multiplier up to what a nudge may leave; c is overwritten."""
    c[:] = h
    for p in range(size):
        row = G[support[p]]
        for j in range(h.size):
            c[j] -= a[p] * row[j]
    return not _any_outside(c, c, c.dtype.type(0), c.dtype.type(multiplier + _NUDGE * _largest(h)))


@kernel
def code_l1_ball(
    G: Floats,
    H: Floats,
    radius: float,
    tol: float,
    enough: float,
    indptr: Any,
    indices: Any,
    values: Any,
    explained: Any,
) -> int:
    """Codes of a batch: argmin_a 1/2 ||x - a V||^2 subject to ||a||_1 <= radius, one CSR row per descriptor.

    Parameters
    ----------
    G : ndarray (atoms, atoms)
        V V^T, symmetric.
    H : ndarray (n, atoms)
        X V^T, of G's dtype.
    radius, tol : float
        Radius of the l1 ball (> 0); see `code_tolerance`.
    enough : float
        How far above its minimum the objective may end; 0 for the exact minimum.
    indptr, indices, values : ndarrays (n + 1,) of int64, (n * width,) of int32, (n * width,) of float64, out
        width = min(atoms, m): a support never has more atoms than there are dimensions.
    explained : ndarray (n,) of float64, out
        1/2 ||x||^2 minus the minimum.

    Returns
    -------
    n_unfinished : int
        Descriptors whose walk hit the cap on steps: feasible, not optimal.
    """
    n, n_atoms = H.shape
    width = indices.size // n
    c, u = np.empty(n_atoms, H.dtype), np.empty(n_atoms, H.dtype)
    state = np.zeros(n_atoms, np.uint8)
    support = np.empty(width, np.int64)
    signs, a, w, b = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    inverse = np.empty((width, width))
    unfinished, filled = 0, 0
    indptr[0] = 0
    solution, scratch = (signs, a, inverse), (u, w, b)
    for i in range(n):
        h = H[i]
        size, multiplier, done = 0, 0.0, False
        for attempt in range(2):
            c[:] = h
            if attempt == 1:  # exact ties were taken in a wrong order: a nudge gives them an order
                largest = _largest(h)
                for j in range(n_atoms):
                    c[j] += h.dtype.type(_NUDGE * largest * (((j + 1) * 0.6180339887498949) % 1.0 - 0.5))
            size, multiplier, done, tied = _walk(G, c, radius, tol, enough, state, support, solution, scratch)
            if done and size > 0:
                polished = _polish(h, support, signs, inverse, size, radius, a, b)
                multiplier = polished if polished >= 0.0 else multiplier
            if done and not (tied and not _holds(G, h, support, a, size, max(multiplier, enough / radius), c)):
                break
        unfinished += not done
        total = 0.0
        for p in range(size):
            indices[filled], values[filled] = support[p], a[p]
            filled += 1
            # a G a^T = a.h - a.c, and c = lambda * sign on the support
            total += a[p] * h[support[p]] + abs(a[p]) * multiplier
        explained[i] = 0.5 * total
        indptr[i + 1] = filled
    return unfinished

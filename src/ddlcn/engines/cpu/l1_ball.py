"""Codes in the l1 ball, exact, in a compiled kernel.

In: the Gram matrix G = V V^T of the atoms and the products H = X V^T of a batch of descriptors. Out, as CSR:
argmin_a 1/2 ||x - a V||^2 subject to ||a||_1 <= radius (docs/method.md, "Layer 1 dictionary").

The solver follows the lasso path (homotopy). With c = h - a G, the solution for a multiplier lambda has c_j = lambda
sign(a_j) on its support S and |c_j| <= lambda elsewhere. It starts at a = 0, lambda = max |h|, and moves
along a_S += step * w, w = inv(G_SS) sign_S, which lowers lambda by `step` and keeps all |c_S| equal, until
the first of: an atom outside S reaches |c_j| = lambda (it enters), a coefficient reaches 0 (it leaves),
||a||_1 reaches the radius or lambda reaches 0 (done). Every point of the path is feasible, and its objective is at most
lambda * radius above the minimum (the duality gap is lambda (radius - ||a||_1)), so stopping early is always safe: the
path also ends where that is at most `gap_tol`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import called, inlined, kernel
from ddlcn.engines.cpu.gram_inverse import add_atom, drop_atom

Floats = NDArray[Any]

# Atoms per vectorised test "is any of these larger?" (16, 64 and 128 measured slower). LLVM vectorises `or`
# reductions but not `max`, 33 ns against 285 ns for 512 atoms: hence the scans below in two steps.
_BLOCK = 32

_FREE = 0  # may enter the support
_ACTIVE = 1  # is in the support
_BARRED = 2  # depends on the support (a duplicate, for example): may enter only after an atom has left it

_TINY = 1e-30  # a largest |h| below this is a zero descriptor
# Where exact ties (as with descriptors and atoms of small integers) lead to a wrong path, it is repeated with h
# perturbed by at most this part of its largest entry: above float32's rounding, too small to matter for the codes.
_PERTURBATION = 5e-5


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
    """Solve exactly on the final support (the path accumulates rounding); -1 if a sign changes, else lambda."""
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
def _follow_path(
    G: Floats,
    c: Floats,
    radius: float,
    tol: float,
    gap_tol: float,
    state: Any,
    support: Any,
    solution: Any,
    scratch: Any,
) -> tuple[int, float, bool, bool]:
    """Follow the path from a = 0 with c = h, which is overwritten; fills the support and (signs, a, inverse).

    Returns the size of the support, lambda, whether the end was reached (or the objective is within `gap_tol` of its
    minimum), and whether a step had length zero: then several events coincided, possibly taken in a wrong order.
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
    done = multiplier <= max(_TINY, gap_tol / radius)
    for _ in range(8 * (width + n_atoms) + 32):  # usually about as many steps as the support has atoms
        if done:
            break
        if enters >= 0:
            if size < width and add_atom(G, support, inverse, size, enters, tol, b, w):
                support[size], a[size] = enters, 0.0
                signs[size] = 1.0 if c[enters] > 0 else -1.0
                state[enters] = _ACTIVE
                size += 1
            else:
                state[enters], barred = _BARRED, True
                if size == 0:  # the atom's norm is zero in floating point: the code is 0
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
        done |= multiplier * radius <= gap_tol
        if done:
            break
        tied |= step <= slack
        for j in range(n_atoms):
            c[j] -= real(step) * u[j]
        if leaves >= 0:
            if barred:  # atoms that depended on the old support may be independent of the new one
                for j in range(n_atoms):
                    if state[j] == _BARRED:
                        state[j] = _FREE
                barred = False
            state[support[leaves]] = _FREE  # its correlation decreases now; it may return with the other sign
            drop_atom(inverse, size, leaves)
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
    """Whether |h - a G| <= multiplier up to the perturbation; c is overwritten."""
    c[:] = h
    for p in range(size):
        row = G[support[p]]
        for j in range(h.size):
            c[j] -= a[p] * row[j]
    return not _any_outside(c, c, c.dtype.type(0), c.dtype.type(multiplier + _PERTURBATION * _largest(h)))


@called
def _code_single(
    G: Floats, H: Floats, radius: float, smallest: float, indptr: Any, indices: Any, values: Any, explained: Any
) -> None:
    """`code_l1_ball` with a single atom: the least squares coefficient, cut at the radius.

    In the order of operations of `_polish`, so that a path of one step would give the same bits.
    """
    filled = 0
    dependent = float(G[0, 0]) <= 0.0
    inverse = 0.0 if dependent else 1.0 / float(G[0, 0])
    for i in range(H.shape[0]):
        h = float(H[i, 0])
        explained[i] = 0.0
        if abs(h) > smallest and not dependent:
            sign = 1.0 if h > 0.0 else -1.0
            multiplier = max((sign * (inverse * h) - radius) / (sign * inverse * sign), 0.0)
            a = inverse * h - multiplier * inverse * sign
            indices[filled], values[filled] = 0, a
            filled += 1
            explained[i] = 0.5 * (a * h + abs(a) * multiplier)
        indptr[i + 1] = filled


@kernel
def code_l1_ball(
    G: Floats,
    H: Floats,
    radius: float,
    tol: float,
    gap_tol: float,
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
    gap_tol : float
        Bound on the objective's distance from its minimum; 0 for the exact minimum.
    indptr, indices, values : ndarrays (n + 1,) of int64, (n * width,) of int32, (n * width,) of float64, out
        width = min(atoms, m): a support never has more atoms than there are dimensions.
    explained : ndarray (n,) of float64, out
        1/2 ||x||^2 minus the minimum.

    Returns
    -------
    n_unfinished : int
        Descriptors whose path hit the bound on steps: feasible, not optimal.
    """
    n, n_atoms = H.shape
    if n_atoms == 1:
        indptr[0] = 0
        _code_single(G, H, radius, max(_TINY, gap_tol / radius), indptr, indices, values, explained)
        return 0
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
            if attempt == 1:  # exact ties were taken in a wrong order: a perturbation breaks them
                largest = _largest(h)
                for j in range(n_atoms):
                    c[j] += h.dtype.type(_PERTURBATION * largest * (((j + 1) * 0.6180339887498949) % 1.0 - 0.5))
            size, multiplier, done, tied = _follow_path(G, c, radius, tol, gap_tol, state, support, solution, scratch)
            if done and size > 0:
                polished = _polish(h, support, signs, inverse, size, radius, a, b)
                multiplier = polished if polished >= 0.0 else multiplier
            if done and not (tied and not _holds(G, h, support, a, size, max(multiplier, gap_tol / radius), c)):
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


@kernel
def code_batch(
    G: Floats, H: Floats, energies: Floats, width: int, radius: float, tol: float, gap_tol: float
) -> tuple[Any, Any, Any, Any]:
    """`code_l1_ball`, with its results in arrays of their own: one call without the GIL in place of ten with it.

    Parameters
    ----------
    energies : ndarray (n,)
        1/2 ||x||^2.
    width : int
        min(atoms, m).

    Returns
    -------
    indptr, indices, values : ndarrays (n + 1,), (nnz,), (nnz,)
    losses : ndarray (n,) of float64
        1/2 ||x - a V||^2.
    """
    n = H.shape[0]
    indptr, explained = np.empty(n + 1, np.int64), np.empty(n)
    indices, values = np.empty(n * width, np.int32), np.empty(n * width)
    code_l1_ball(G, H, radius, tol, gap_tol, indptr, indices, values, explained)
    for i in range(n):
        explained[i] = max(np.float64(energies[i]) - explained[i], 0.0)
    used = indptr[n]
    return indptr, indices[:used].copy(), values[:used].copy(), explained

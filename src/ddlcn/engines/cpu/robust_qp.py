"""The same small coding problem, solved by orthogonal projections: slow, for ill-conditioned dictionaries.

The tableau of `local_qp` works on squared distances, so it cannot distinguish an atom from the affine hull of others
when it is closer than about 1e-7 of the atoms' spread (for example atoms on a line in float32); with a tiny beta the
optimum may depend on that. Here the atoms themselves are kept, relative to the descriptor, and the basis as an
orthonormal frame of its affine hull, rebuilt by Gram-Schmidt whenever an atom leaves: nothing is squared. The steps are
those of `local_qp`: the worst violator is driven until it enters, or until a code in the basis vanishes. All of it is
compiled `strict`, so that NaN from a tableau that has broken down is detected.

In: x (m,), atoms D, the indices of k of them, beta, tol. Out: z (k,) and the certificate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import strict

# A direction is independent of the frame if orthogonalising leaves more than this part of it: some float64 roundings.
INDEPENDENT = 1e-14
BIG = 1e300


@strict
def inner(u: Any, v: Any) -> float:
    """The inner product of two rows."""
    total = 0.0
    for c in range(u.shape[0]):
        total += u[c] * v[c]
    return total


@strict
def extend_frame(R: Any, first: int, j: int, size: int, Q: Any, U: Any) -> bool:
    """Append v_j - v_first to the frame Q (size, m) and its coefficients as column `size` of U; False if dependent."""
    u = R[j] - R[first]
    length = np.sqrt(inner(u, u))
    U[: size + 1, size] = 0.0
    for _ in range(2):  # orthogonalising twice is enough
        for a in range(size):
            part = inner(Q[a], u)
            U[a, size] += part
            u -= part * Q[a]
    remainder = np.sqrt(inner(u, u))
    if remainder <= INDEPENDENT * length or size == R.shape[1]:
        return False
    U[size, size] = remainder
    Q[size] = u / remainder
    return True


@strict
def back_substitute(U: Any, size: int, y: Any) -> None:
    """y <- inv(U) y, with U (size, size) upper triangular."""
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            y[a] -= U[a, b] * y[b]
        y[a] /= U[a, a]


@strict
def aim_step(R: Any, w: Any, z: Any, sign: Any, basis: Any, n_basis: int, Q: Any, U: Any, step: Any) -> None:
    """step (n_basis,): from the current codes to the optimum of this basis with these signs."""
    size = n_basis - 1
    point = np.zeros(R.shape[1])  # z V - x
    for b in range(n_basis):
        point += z[basis[b]] * R[basis[b]]
    y = np.zeros(size)
    w_first = sign[basis[0]] * w[basis[0]]
    for a in range(size):  # y = -(Q point + inv(U^T) c)
        y[a] = w_first - sign[basis[a + 1]] * w[basis[a + 1]]
        for b in range(a):
            y[a] -= U[b, a] * y[b]
        y[a] /= U[a, a]
    for a in range(size):
        y[a] -= inner(Q[a], point)
    back_substitute(U, size, y)
    step[0] = 0.0
    for a in range(size):
        step[a + 1] = y[a]
        step[0] -= y[a]


@strict
def advance(w: Any, z: Any, sign: Any, basis: Any, n_basis: int, step: Any, limit: float) -> int:
    """Move the codes along `step`, at most `limit` times it, until one vanishes; returns its place, or -1."""
    blocking = -1
    for b in range(n_basis):
        i = basis[b]
        if w[i] > 0.0 and step[b] * sign[i] < 0.0:
            ratio = max(z[i] * sign[i], 0.0) / (-step[b] * sign[i])
            if ratio < limit:
                blocking, limit = b, ratio
    if limit < BIG:
        for b in range(n_basis):
            z[basis[b]] += limit * step[b]
    if blocking >= 0:
        z[basis[blocking]] = 0.0
    # The rounding error of the sum goes to the largest code: there may have been huge ones, of either sign.
    total, largest = 0.0, basis[0]
    for b in range(n_basis):
        total += z[basis[b]]
        largest = basis[b] if abs(z[basis[b]]) > abs(z[largest]) else largest
    z[largest] += 1.0 - total
    return blocking


@strict
def leave(R: Any, z: Any, sign: Any, basis: Any, n_basis: int, place: int, Q: Any, U: Any) -> int:
    """Remove an atom and rebuild the frame, the largest code first. Returns the size of the basis."""
    sign[basis[place]] = 0.0
    basis[place] = basis[n_basis - 1]
    n_basis -= 1
    for b in range(n_basis):
        if abs(z[basis[b]]) > abs(z[basis[0]]):
            basis[0], basis[b] = basis[b], basis[0]
    kept = 1
    for b in range(1, n_basis):
        j = basis[b]
        if extend_frame(R, basis[0], j, kept - 1, Q, U):
            basis[kept] = j
            kept += 1
        else:
            z[basis[0]] += z[j]
            z[j] = sign[j] = 0.0
    return kept


@strict
def sums_to_one(z: Any, k: int) -> bool:
    """Whether k codes are finite and sum to one: on a degenerate dictionary the tableau may break down.

    To be checked first: a comparison with NaN in a kernel that is not `strict` may give either result.
    """
    total, size = 0.0, 1.0
    for s in range(k):
        total += z[s]
        size += abs(z[s])
    return abs(total - 1.0) <= 1e-12 * size


@strict
def solve_robust_qp(x: Any, D: Any, indices: Any, k: int, beta: float, tol: float, z: Any, gradient: Any) -> float:
    """Solve on the atoms `indices` (k,). Leaves the codes in z and g - nu in gradient, and returns the certificate."""
    m = x.shape[0]
    R, w, sign, barred = np.empty((k, m)), np.empty(k), np.zeros(k), np.zeros(k, np.bool_)
    width = min(k, m + 1)
    Q, U, step, basis = (
        np.empty((width, m)),
        np.empty((width, width)),
        np.empty(width + 1),
        np.empty(width + 1, np.int32),
    )
    first, scale, spread = 0, 0.0, 0.0
    for i in range(k):
        z[i] = 0.0
        for c in range(m):
            R[i, c] = np.float64(D[indices[i], c]) - np.float64(x[c])
        w[i] = beta * np.sqrt(inner(R[i], R[i]))
        scale, spread = max(scale, w[i]), max(spread, inner(R[i], R[i]))
        first = i if inner(R[i], R[i]) < inner(R[first], R[first]) else first
    if scale == 0.0:
        scale = 1.0
    noise = 1e-15 * np.sqrt(spread)
    basis[0], n_basis = first, 1
    z[first] = sign[first] = 1.0
    kkt, best_kkt, best = BIG, BIG, np.empty(k)
    for attempt in range(100 + 10 * k):
        point, size = np.zeros(m), 0.0
        for b in range(n_basis):
            point += z[basis[b]] * R[basis[b]]
            size += abs(z[basis[b]])
        nu, total = 0.0, 0.0
        for i in range(k):
            total += z[i]
            gradient[i] = inner(R[i], point)
            nu += (gradient[i] + sign[i] * w[i]) / n_basis if sign[i] != 0.0 else 0.0
        j, worst, wrong = -1, max(min(0.25 * tol * scale, 1e-10 * spread), noise * np.sqrt(inner(point, point))), 0.0
        kkt = 0.0
        for i in range(k):
            gradient[i] -= nu
            if sign[i] != 0.0:
                wrong = max(wrong, abs(gradient[i] + sign[i] * w[i]))
            else:
                kkt = max(kkt, abs(gradient[i]) - w[i])
                if abs(gradient[i]) - w[i] > worst and not barred[i]:
                    j, worst = i, abs(gradient[i]) - w[i]
        kkt = max(max(kkt, wrong) / scale, abs(total - 1.0))
        if not sums_to_one(z, k):
            break
        if kkt < best_kkt:
            best_kkt = kkt
            best[:] = z[:k]
        if j < 0 and (wrong <= tol * scale or attempt > 50 + 10 * k):
            break
        if j >= 0:
            barred[j] = True  # until a nonzero step is made: the worst violator may be unable to move
            sign[j] = -1.0 if gradient[j] > 0.0 else 1.0
            basis[n_basis] = j
            if extend_frame(R, basis[0], j, n_basis - 1, Q, U):
                n_basis += 1
            else:  # v_j is an affine combination of the basis: exchange codes for it until one vanishes
                y = U[: n_basis - 1, n_basis - 1].copy()
                back_substitute(U, n_basis - 1, y)
                step[n_basis] = sign[j]
                step[0] = -sign[j]
                for b in range(1, n_basis):
                    step[b] = -sign[j] * y[b - 1]
                    step[0] += sign[j] * y[b - 1]
                place = advance(w, z, sign, basis, n_basis + 1, step, BIG)
                if place < 0:
                    sign[j] = 0.0
                    continue
                n_basis = leave(R, z, sign, basis, n_basis + 1, place, Q, U)
        while True:
            aim_step(R, w, z, sign, basis, n_basis, Q, U, step)
            moved = z[basis[0]]
            place = advance(w, z, sign, basis, n_basis, step, 1.0)
            if moved != z[basis[0]]:
                barred[:] = False
            if place < 0 or n_basis == 1:
                break
            n_basis = leave(R, z, sign, basis, n_basis, place, Q, U)
    z[:k] = best  # the best seen: later steps may be worse, and the last one has no certificate
    return best_kkt

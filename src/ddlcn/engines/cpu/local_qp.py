"""The exact solver of one small coding problem: an active set on a pivot tableau.

    min_z  1/2 ||x - z V||^2 + sum_j w_j |z_j|     subject to  sum_j z_j = 1          (DESIGN 2, "Coding")

In: the squared distances d2_j = ||x - v_j||^2 (k,), E_ij = ||v_i - v_j||^2 (k, k), the weights w (k,).
Out: z (k,), exact, and its certificate. Because sum z = 1, squared distances are all the solver needs:
C_ij = (v_i - x).(v_j - x) = (d2_i + d2_j - E_ij) / 2, and the gradient is C z = (d2 - E z + const) / 2, so nothing
of the descriptors' width appears here and nothing cancels when x or the atoms lie far from the origin.

The tableau (T (k, k), q (k,)) says how everything answers to everything: q_j is the code of an atom in the basis (those
with a code) and the gradient g_j - nu of any other; T_ij is the change of q_i when the code (or gradient) of j moves by
one. T is symmetric within codes and within gradients, skew between them. One principal pivot swaps an atom in or out.
The multiplier nu of the sum-to-one constraint is always in the basis and never looked at: its row is not kept. A step:

1. price: the atom j outside the basis that promises the largest decrease among those with |g_j - nu| > w_j;
2. drive: raise its code until its own optimality condition holds (then it enters), or until a code in the basis
   reaches zero (then that one leaves, and driving goes on).

Every step lowers the objective, so it ends, at the optimum. Dependent atoms (duplicates, more atoms than dimensions)
have T_jj = 0, the squared distance of v_j to the affine hull of the basis: they only ever trade places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined

# An atom counts as lying in the affine hull of the basis if its squared distance to it is below this part of the
# atoms' squared spread: a hundred roundings of float64, so that a pivot keeps two digits and refinement the rest.
DEPENDENT = 1e-13
# Noise of the gradient in float64, as a multiple of the largest squared distance: no atom is priced in below it.
NOISE = 1e-15
# Violations below this multiple of the largest squared distance are of no interest, those above are whatever `tol` is:
# with beta = 0 the certificate is absolute, and says nothing about small data.
EXACT = 1e-10
# Stands for infinity, which the kernels' arithmetic flags rule out.
BIG = 1e300


@inlined
def padded(k: int) -> int:
    """k rounded up to whole vectors. Loops run over the padding too: remainder loops cost more than the work itself."""
    return (k + 7) // 8 * 8


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
    for i in range(k):  # over p too: cheaper than stepping round it, and overwritten below
        factor = T[i, p]
        for j in range(width):
            T[i, j] -= factor * row[j]
        T[i, p] = factor * inverse
    for j in range(width):
        T[p, j] = -row[j]
    T[p, p] = inverse
    q[p] = -q_p


@inlined
def price(T: Any, q: Any, k: int, w: Any, sign: Any, threshold: float, dependent: float, row: Any) -> int:
    """The atom outside the basis with the largest promised decrease, violation^2 / curvature; -1 if none violates.

    A curvature below `dependent` is noise, and would make the noise of a slope look like the best of promises.
    """
    width = padded(k)
    for j in range(width):
        row[j] = T[j, j]
    for j in range(width):  # selected without a branch, divided in any case: this way it vectorises
        violation = abs(q[j]) - w[j]
        violation = violation if (sign[j] == 0.0) & (violation > threshold) else 0.0
        row[j] = violation * violation / max(row[j], dependent)
    most = 0.0
    for j in range(width):
        most = max(most, row[j])
    if most == 0.0:
        return -1
    best = 0
    for j in range(width):
        best = j if row[j] == most else best
    return best


@inlined
def first_to_vanish(T: Any, q: Any, k: int, j: int, direction: float, w: Any, sign: Any, row: Any) -> int:
    """The code in the basis that reaches zero first as code j moves; row[it] is the step, BIG if none ever does.

    A code without a penalty may change its sign freely, so it never blocks.
    """
    width = padded(k)
    for i in range(width):
        rate = T[j, i] * direction * sign[i]  # T_ji = -T_ij, since i is a code and j a gradient
        rate = rate if w[i] > 0.0 else 0.0
        step = max(q[i] * sign[i], 0.0) / max(rate, 1e-300)
        row[i] = step if rate > 0.0 else BIG
    least = BIG
    for i in range(width):
        least = min(least, row[i])
    first = 0
    for i in range(width):
        first = i if row[i] == least else first
    return first


@inlined
def drive(
    E: Any, d2: Any, w: Any, k: int, j: int, dependent: float, n_basis: int, T: Any, q: Any, sign: Any, row: Any
) -> int:
    """Raise the code of atom j until it enters the basis. Returns the size of the basis."""
    direction = -1.0 if q[j] > 0.0 else 1.0
    q[j] += direction * w[j]
    moved = 0.0
    while True:
        blocking = first_to_vanish(T, q, k, j, direction, w, sign, row)
        block_step = row[blocking]
        curvature = T[j, j]
        full_step = max(-direction * q[j], 0.0) / curvature if curvature > dependent else BIG
        if full_step <= block_step:
            if full_step == BIG:  # flat and nothing in the way: what is left of the slope is noise
                for i in range(k):
                    q[i] -= T[i, j] * direction * moved
                q[j] = 0.0
                return n_basis
            pivot(T, q, k, j, sign, row)
            q[j] += direction * moved
            sign[j] = direction
            return n_basis + 1
        if n_basis == 1:  # the only code has reached zero, so z_j = 1 holds the sum alone
            start_tableau(E, d2, w, k, j, T, q, sign)
            return 1
        for i in range(k):
            q[i] += T[i, j] * direction * block_step
        moved += block_step
        q[blocking] = 0.0
        pivot(T, q, k, blocking, sign, row)
        q[blocking] = -sign[blocking] * w[blocking]
        sign[blocking] = 0.0
        n_basis -= 1


@inlined
def certify(E: Any, d2: Any, w: Any, k: int, z: Any, gradient: Any) -> float:
    """The largest violation of optimality at z, from the problem's own data: nothing of the tableau is trusted.

    Leaves g - nu in `gradient`. With g = C z: |g_j + w_j sign(z_j) - nu| for codes, max(|g_j - nu| - w_j, 0) for the
    others.
    """
    width = padded(k)
    for i in range(width):
        gradient[i] = 0.5 * d2[i]
    for l in range(k):
        half = 0.5 * z[l]
        for i in range(width):
            gradient[i] -= half * E[l, i]
    nu, n_codes = 0.0, 0.0
    for i in range(k):
        pull = gradient[i] + (w[i] if z[i] > 0.0 else -w[i])
        nu += pull if z[i] != 0.0 else 0.0
        n_codes += 1.0 if z[i] != 0.0 else 0.0
    nu /= n_codes
    worst = 0.0
    for i in range(k):
        gradient[i] -= nu
        pull = abs(gradient[i] + (w[i] if z[i] > 0.0 else -w[i]))
        excess = pull if z[i] != 0.0 else abs(gradient[i]) - w[i]
        worst = max(worst, excess)
    return worst


@inlined
def restart_tableau(
    E: Any, d2: Any, w: Any, k: int, dependent: float, z: Any, T: Any, q: Any, sign: Any, row: Any
) -> int:
    """A fresh tableau with the basis of z, farthest from the hull first. Returns the size of the basis.

    Codes that come out with another sign than they had are taken out again, so the basis may be smaller than z's.
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


@inlined
def refine(T: Any, w: Any, k: int, sign: Any, gradient: Any, z: Any) -> None:
    """One step of iterative refinement: the codes move so as to undo what `certify` found wrong with them."""
    total, largest = 0.0, 0
    for i in range(k):
        if sign[i] != 0.0:
            error = gradient[i] + sign[i] * w[i]
            for j in range(k):
                if sign[j] != 0.0:
                    z[j] -= T[j, i] * error
    for i in range(k):
        total += z[i]
        largest = i if abs(z[i]) > abs(z[largest]) else largest
    z[largest] += 1.0 - total


@inlined
def make_workspace(k: int) -> Any:
    """Arrays for problems of up to k atoms: E, T (padded, padded); d2, w, q, sign, row, z, gradient (padded,)."""
    width = padded(k)
    return (
        np.zeros((width, width)), np.zeros((width, width)), np.zeros(width), np.zeros(width), np.zeros(width),
        np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width),
    )  # fmt: skip


@inlined
def solve_local_qp(k: int, beta: float, tol: float, warm: bool, space: Any) -> float:
    """Solve one problem of k atoms; returns the certificate, the largest violation divided by beta * max zeta.

    `space` comes from `make_workspace`, with E and d2 filled in, and z with a first guess if `warm`; its w (beta *
    zeta), z and gradient (g - nu) are results. Atoms that violate by less than a quarter of `tol` (relative, as the
    certificate) stay without a code.
    """
    E, T, d2, w, q, sign, row, z, gradient = space
    first, largest, scale, spread = 0, 0.0, 0.0, 0.0
    for i in range(k):
        w[i] = beta * np.sqrt(d2[i])
        scale = max(scale, w[i])
        largest = max(largest, d2[i])
        first = i if d2[i] < d2[first] else first
    for i in range(k):
        spread = max(spread, E[first, i])
    for i in range(k, padded(k)):
        w[i] = BIG  # padding is never priced in
    if scale == 0.0:
        scale = 1.0
    dependent = max(DEPENDENT * spread, 1e-300)
    threshold = max(min(0.25 * tol * scale, EXACT * largest), NOISE * largest)
    kkt = BIG
    for attempt in range(4):
        if warm or attempt > 0:
            n_basis = restart_tableau(E, d2, w, k, dependent, z, T, q, sign, row)
        else:
            start_tableau(E, d2, w, k, first, T, q, sign)
            n_basis = 1
        # Four times through every atom is far beyond what any problem needed; a degenerate cycle must end somewhere.
        for _ in range(20 + 4 * k):
            j = price(T, q, k, w, sign, threshold, dependent, row)
            if j < 0:
                break
            n_basis = drive(E, d2, w, k, j, dependent, n_basis, T, q, sign, row)
        for i in range(k):
            z[i] = q[i] if sign[i] != 0.0 else 0.0
        kkt = certify(E, d2, w, k, z, gradient) / scale
        for _ in range(2):
            if kkt <= tol:
                return kkt
            refine(T, w, k, sign, gradient, z)
            kkt = certify(E, d2, w, k, z, gradient) / scale
        # What is left are violations outside the basis, seen now that rounding is out of the way: another round.
    return kkt

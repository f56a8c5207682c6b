"""The exact solver of one small coding problem: an active set on a pivot tableau.

    min_z  1/2 ||x - z V||^2 + sum_j w_j |z_j|     subject to  sum_j z_j = 1          (docs/method.md, "Coding")

In: the squared distances d2_j = ||x - v_j||^2 (k,), E_ij = ||v_i - v_j||^2 (k, k), the weights w (k,).
Out: z (k,), exact, and its certificate. Because sum z = 1, squared distances are all the solver needs:
C_ij = (v_i - x).(v_j - x) = (d2_i + d2_j - E_ij) / 2, and the gradient is C z = (d2 - E z + const) / 2, so nothing
of size m appears here and nothing cancels when x or the atoms lie far from the origin.

It works on the tableau of `pivot_tableau`. A step:

1. price: the atom j outside the basis that promises the largest decrease among those with |g_j - nu| > w_j;
2. drive: raise its code until its own optimality condition holds (then it enters), or until a code in the basis
   reaches zero (then that one leaves, and driving continues).

Every step lowers the objective, so it ends, at the optimum. Dependent atoms (duplicates, more atoms than dimensions)
have T_jj = 0, the squared distance of v_j to the affine hull of the basis: they can only replace each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined
from ddlcn.engines.cpu.pivot_tableau import extend_tableau, padded, pivot, restart_tableau, start_tableau

# An atom counts as lying in the affine hull of the basis if its squared distance to it is below this part of the
# atoms' squared spread: a hundred roundings of float64, so that a pivot keeps two digits and refinement the rest.
DEPENDENT = 1e-13
# Noise of the gradient in float64, as a multiple of the largest squared distance: no atom is priced in below it.
NOISE = 1e-15
# Violations above this multiple of the largest squared distance are always priced in, whatever `tol` is: with beta = 0
# the certificate is absolute, which is no guarantee for data of small scale.
EXACT = 1e-10
# Stands for infinity, which the kernels' arithmetic flags rule out.
BIG = 1e300


@inlined
def price(T: Any, q: Any, k: int, w: Any, sign: Any, threshold: float, dependent: float, row: Any) -> int:
    """The atom outside the basis with the largest promised decrease, violation^2 / curvature; -1 if none violates.

    A curvature below `dependent` is noise: divided by it, a slope that is noise would seem the largest decrease.
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
            if full_step == BIG:  # flat and nothing blocks: the remaining slope is noise
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
def certify(E: Any, d2: Any, w: Any, k: int, scale: float, z: Any, gradient: Any) -> float:
    """The certificate of z, from the problem's data alone, not from the tableau.

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
    nu, n_codes, total = 0.0, 0.0, 0.0
    for i in range(k):
        pull = gradient[i] + (w[i] if z[i] > 0.0 else -w[i])
        nu += pull if z[i] != 0.0 else 0.0
        total += z[i]
        n_codes += 1.0 if z[i] != 0.0 else 0.0
    nu /= n_codes
    worst = 0.0
    for i in range(k):
        gradient[i] -= nu
        pull = abs(gradient[i] + (w[i] if z[i] > 0.0 else -w[i]))
        excess = pull if z[i] != 0.0 else abs(gradient[i]) - w[i]
        worst = max(worst, excess)
    return max(worst / scale, abs(total - 1.0))


@inlined
def refine(T: Any, w: Any, k: int, sign: Any, gradient: Any, z: Any) -> None:
    """One step of iterative refinement: the codes move to correct the errors that `certify` measured."""
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
def solve_local_qp(k: int, n_known: int, rough: bool, beta: float, tol: float, space: Any) -> float:
    """Solve one problem of k atoms; returns the certificate, the largest violation divided by beta * max zeta.

    `space` comes from `make_workspace`, with E and d2 filled in; its w (beta * zeta), z and gradient (g - nu) are
    results. The first `n_known` atoms are those that `keep_basis` kept. If `rough`, only codes are computed:
    no certificate, and no correction of rounding. Atoms that violate by less than a quarter of `tol` (relative, as the
    certificate) keep a code of zero.
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
        if attempt > 0:
            n_basis = restart_tableau(E, d2, w, k, dependent, z, T, q, sign, row)
        elif n_known > 0:
            extend_tableau(E, d2, k, n_known, w, T, q, sign, z, row)
            n_basis = n_known
        else:
            start_tableau(E, d2, w, k, first, T, q, sign)
            n_basis = 1
        # Four passes over every atom are far more than any problem needed; this bound ends degenerate cycles.
        for _ in range(20 + 4 * k):
            j = price(T, q, k, w, sign, threshold, dependent, row)
            if j < 0:
                break
            n_basis = drive(E, d2, w, k, j, dependent, n_basis, T, q, sign, row)
        total = 0.0
        for i in range(k):
            z[i] = q[i] if sign[i] != 0.0 else 0.0
            total += z[i]
        if abs(total - 1.0) > 1e-14:
            largest_code = 0
            for i in range(k):
                largest_code = i if abs(z[i]) > abs(z[largest_code]) else largest_code
            z[largest_code] += 1.0 - total
        if rough:
            return 0.0
        kkt = certify(E, d2, w, k, scale, z, gradient)
        for step in range(3):
            # Codes within `tol` are refined once, since it is cheap: rounding accumulates in a long-lived T.
            if kkt <= (1e-4 * tol if step == 0 else tol):
                return kkt
            refine(T, w, k, sign, gradient, z)
            kkt = certify(E, d2, w, k, scale, z, gradient)
        # The remaining violations are outside the basis, visible once rounding is corrected: another round.
    return kkt

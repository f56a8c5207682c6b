"""The coding problem solved with 100 decimal digits: slow and simple, the reference where float64 is too imprecise."""

from decimal import Decimal, localcontext

import numpy as np

DIGITS = 100


def decimals(array):
    """The same numbers, exactly, as an array of Decimal."""
    return np.vectorize(Decimal, otypes=[object])(np.asarray(array, dtype=np.float64))


def solve(A, b):
    """x with A x = b, by elimination with pivots."""
    A, b, n = A.copy(), b.copy(), len(b)
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(A[r, c]))
        A[[c, p]], b[[c, p]] = A[[p, c]], b[[p, c]]
        for r in range(c + 1, n):
            factor = A[r, c] / A[c, c]
            A[r] -= factor * A[c]
            b[r] -= factor * b[c]
    for c in range(n - 1, -1, -1):
        b[c] = (b[c] - (A[c, c + 1 :] * b[c + 1 :]).sum()) / A[c, c]
    return b


def exact_optimum(x, D, beta):
    """The optimal codes of x (m,) over all atoms of D (atoms, m), rounded to float64 at the very end.

    The worst violator is raised until its own condition holds, or until another code vanishes, which then leaves.
    """
    with localcontext() as context:
        context.prec = DIGITS
        R = decimals(D) - decimals(x)
        C, k = R @ R.T, len(D)
        w = np.array([Decimal(beta) * C[i, i].sqrt() for i in range(k)])
        zero = Decimal(10) ** (-DIGITS // 2) * max(C[i, i] for i in range(k))
        first = min(range(k), key=lambda i: C[i, i])
        z = np.array([Decimal(0)] * k)
        z[first] = Decimal(1)
        sign = {first: 1}  # of the atoms of the basis
        while True:
            g = C @ z
            nu = g[(b := next(iter(sign)))] + sign[b] * w[b]
            j = max((i for i in range(k) if i not in sign), key=lambda i: abs(g[i] - nu) - w[i], default=None)
            if j is None or abs(g[j] - nu) - w[j] <= zero:
                return z.astype(np.float64)
            direction = -1 if g[j] > nu else 1
            while j not in sign:
                basis = list(sign)
                n = len(basis)
                A = np.array([[Decimal(1)] * (n + 1)] * (n + 1))
                A[:n, :n], A[n, n] = C[np.ix_(basis, basis)], Decimal(0)
                answer = solve(A, -direction * np.append(C[basis, j], Decimal(1)))  # of the basis, and of -nu
                curvature = C[j, j] + direction * ((C[j, basis] * answer[:n]).sum() + answer[n])
                g = C @ z
                slope = direction * (g[j] - g[basis[0]] - sign[basis[0]] * w[basis[0]]) + w[j]
                steps = {i: -z[i] / a for i, a in zip(basis, answer, strict=False) if w[i] > 0 and a * sign[i] < 0}
                if curvature > zero:
                    steps[j] = -slope / curvature
                if not steps:  # atoms that depend on each other, without a penalty: nothing to gain
                    return z.astype(np.float64)
                until = min(steps, key=lambda i: steps[i])
                z[basis] += steps[until] * answer[:n]
                z[j] += steps[until] * direction
                if until == j or n == 1:
                    sign[j] = direction
                if until != j:
                    z[until] = Decimal(0)
                    del sign[until]

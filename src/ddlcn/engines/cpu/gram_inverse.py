"""The inverse of the Gram matrix G_SS on a support S, updated in place as atoms enter and leave."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ddlcn.engines.compile import inlined

Floats = NDArray[Any]

# An atom whose squared distance from the span of the support is below this part of its squared norm (or below
# the rounding of G) counts as dependent. Smaller, and the inverse in float64 loses most of its digits.
_DEPENDENT = 1e-11


@inlined
def drop_atom(inverse: Floats, size: int, k: int) -> None:
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
def add_atom(G: Floats, support: Any, inverse: Floats, size: int, j: int, tol: float, b: Floats, r: Floats) -> bool:
    """Add atom j to the inverse of G on the support, in place; False if it depends on the support."""
    pivot = float(G[j, j])
    for p in range(size):
        b[p], r[p] = 0.0, G[j, support[p]]
    for attempt in range(3):
        if attempt > 0:  # nearly dependent: the inverse, updated many times, may be too inexact to tell
            if pivot > 1e-3 * G[j, j]:
                break
            for p in range(size):
                r[p] = G[j, support[p]]
                for q in range(size):
                    r[p] -= G[support[p], support[q]] * b[q]
        pivot = float(G[j, j])
        for p in range(size):
            for q in range(size):
                b[p] += inverse[p, q] * r[q]
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

"""The nearest atoms of a descriptor, exactly, at the price of a float32 product (DESIGN 2, "Coding").

In: a descriptor x (m,), atoms D (atoms, m) and their product h (atoms,) in float32. Out: the indices of the k nearest
atoms and their squared distances in float64. Candidates are found in float32; those that float32 cannot tell from the
k-th are ranked anew in float64, so the choice is exact and ties go to the lower index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined


@inlined
def squared_distance(x: Any, v: Any) -> float:
    """||x - v||^2 in float64, exactly 0 for equal rows."""
    total = 0.0
    for c in range(x.shape[0]):
        difference = np.float64(x[c]) - np.float64(v[c])
        total += difference * difference
    return total


@inlined
def keep_smallest(value: float, index: int, limit: int, size: int, values: Any, indices: Any) -> int:
    """Offer a value to an ascending list of the `limit` smallest so far; equals stay behind. Returns the list's size."""
    if size < limit:
        size += 1
    elif value >= values[size - 1]:
        return size
    at = size - 1
    while at > 0 and values[at - 1] > value:
        values[at] = values[at - 1]
        indices[at] = indices[at - 1]
        at -= 1
    values[at] = value
    indices[at] = index
    return size


@inlined
def rank(values: Any, size: int, limit: int, ranks: Any) -> int:
    """ranks (size,): how many of `values` are smaller, for each. Returns how many ranks are below `limit`."""
    one, zero = np.float32(1.0), np.float32(0.0)
    below = 0
    for a in range(size):
        value, count = values[a], zero  # counted in float32, the width of the comparison, so that it vectorises
        for b in range(size):
            count += one if values[b] < value else zero
        ranks[a] = count
        below += count < limit
    return below


@inlined
def shortlist(h: Any, half_norms: Any, k: int, lows: Any, ranks: Any, keys: Any, indices: Any) -> int:
    """Candidates for the k + 1 nearest atoms: keys (half_norms - h, which orders by distance) and indices; their number.

    The keys are folded in half, minimum on minimum, until 2 to 4 (k + 1) lanes are left. The (k + 1)-th smallest lane
    bounds the (k + 1)-th smallest key, so only lanes up to it are searched: no sorting and hardly a branch, which is
    what keeps the search cheaper than the product H.
    """
    n_atoms = h.shape[0]
    n_lanes, n_padded = n_atoms, 1
    while n_lanes >= 4 * (k + 1):
        n_lanes = (n_lanes + 1) // 2
        n_padded *= 2
    n_padded *= n_lanes
    for j in range(n_atoms):
        lows[j] = half_norms[j] - h[j]
    for j in range(n_atoms, n_padded):
        lows[j] = np.float32(3e38)
    width = n_padded
    while width > n_lanes:
        width //= 2
        for j in range(width):
            lows[j] = min(lows[j], lows[j + width])
    bound = np.float32(-3e38)
    rank(lows, n_lanes, k, ranks)
    for l in range(n_lanes):
        bound = max(bound, lows[l] if ranks[l] <= k else np.float32(-3e38))
    found = 0
    for l in range(n_lanes):
        if lows[l] <= bound:
            for j in range(l, n_atoms, n_lanes):
                key = half_norms[j] - h[j]
                if key <= bound:
                    keys[found] = key
                    indices[found] = j
                    found += 1
    return found


@inlined
def nearest(
    x: Any, D: Any, h: Any, half_norms: Any, k: int, margin: float,
    lows: Any, ranks: Any, keys: Any, candidates: Any, indices: Any, d2: Any,
) -> None:  # fmt: skip
    """Exactly the k nearest atoms of x: indices (k,), and d2 (k,) in float64; ties go to the lower index.

    `margin` bounds the error of a key. If the gap between the k-th key and the next is wider than the errors can be, the
    set is certain. If not, all atoms within the gap are ranked by their distance in float64.
    """
    n_atoms = h.shape[0]
    if k == n_atoms:
        for j in range(k):
            indices[j] = j
            d2[j] = squared_distance(x, D[j])
        return
    found = shortlist(h, half_norms, k, lows, ranks, keys, candidates)
    certain = rank(keys, found, k, ranks) == k
    last, following, size = np.float32(-3e38), np.float32(3e38), 0
    for a in range(found):
        if ranks[a] < k:
            last = max(last, keys[a])
            if size < k:
                indices[size] = candidates[a]
                size += 1
        else:
            following = min(following, keys[a])
    reach = np.float64(last) + 2.0 * margin
    if certain and np.float64(following) > reach:
        for s in range(k):
            d2[s] = squared_distance(x, D[indices[s]])
        return
    size = 0
    for j in range(n_atoms):
        if np.float64(half_norms[j] - h[j]) <= reach:
            size = keep_smallest(squared_distance(x, D[j]), j, k, size, d2, indices)

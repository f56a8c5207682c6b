"""The exact nearest atoms of a descriptor, at the cost of a float32 product (docs/method.md, "Coding").

In: a descriptor x (m,), atoms D (atoms, m) and their product h (atoms,) in float32. Out: the indices of the k nearest
atoms and their squared distances in float64. Candidates are found in float32; those that float32 cannot tell from the
k-th are ranked again in float64, so the choice is exact and ties go to the lower index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined

# Where the error of a key may reach this, squares overflow float32: all distances are computed in float64 instead.
MAX_MARGIN = 1e25


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
    """Insert a value into the ascending list of the `limit` smallest so far, after equal ones; returns its size."""
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
    """ranks (size,): for each value, how many are smaller; returns how many ranks are below `limit`."""
    one, zero = np.float32(1.0), np.float32(0.0)
    below = 0
    for a in range(size):
        value, count = values[a], zero  # counted in float32, the width of the comparison, so that it vectorises
        for b in range(size):
            count += one if values[b] < value else zero
        ranks[a] = count
        below += int(count < limit)
    return below


def count_lanes(k: int) -> int:
    """Number of lanes in the search for the k nearest: the width of H must be a multiple of it.

    Twice as many as neighbours keep the shortlist short (about 4/3 k); a multiple of 16 keeps it vectorised.
    """
    return (2 * (k + 1) + 15) // 16 * 16


@inlined
def shortlist(h: Any, half_norms: Any, k: int, lows: Any, bits: Any, ranks: Any, keys: Any, indices: Any) -> int:
    """Candidates for the k + 1 nearest atoms, ascending: keys (half_norms - h, ordered as distances); their number.

    h and half_norms are (depth, lanes), atom by atom; `bits` is a view of `lows` as integers. The (k + 1)-th smallest
    of the lanes' minima bounds the (k + 1)-th smallest key, so the keys up to it are picked, without a branch on any
    single one: mispredicted branches would cost more than the product H. The bound is left in lows[lanes].
    """
    depth, lanes = h.shape
    for l in range(lanes):
        lows[l] = half_norms[0, l] - h[0, l]
    for d in range(1, depth):
        for l in range(lanes):
            lows[l] = min(lows[l], half_norms[d, l] - h[d, l])
    rank(lows, lanes, k, ranks)
    for l in range(lanes):  # a float's bits as an integer of the same order: its maxima vectorise
        bits[l] = bits[l] ^ ((bits[l] >> 31) & 0x7FFFFFFF)
    most = bits[0]
    for l in range(lanes):
        most = max(most, bits[l] if ranks[l] <= k else np.int32(-0x7FFFFFFF))
    bits[0] = most ^ ((most >> 31) & 0x7FFFFFFF)
    bound = lows[0]
    found = np.uint64(0)  # unsigned, so that numba adds no check for negative indices
    for d in range(depth):
        here = False
        for l in range(lanes):
            here |= half_norms[d, l] - h[d, l] <= bound
        if here:
            for l in range(lanes):
                key = half_norms[d, l] - h[d, l]
                keys[found] = key
                indices[found] = d * lanes + l
                found += np.uint64(key <= bound)
    lows[lanes] = bound
    return int(found)


@inlined
def sort_ascending(indices: Any, values: Any, size: int) -> None:
    """Sort values by index, in place; for few entries."""
    for s in range(1, size):
        for t in range(s, 0, -1):
            if indices[t] > indices[t - 1]:
                break
            indices[t], indices[t - 1] = indices[t - 1], indices[t]
            values[t], values[t - 1] = values[t - 1], values[t]


@inlined
def nearest_of_all(x: Any, D: Any, k: int, indices: Any, d2: Any) -> None:
    """As `nearest`, from the distances to all atoms."""
    size = 0
    for j in range(D.shape[0]):
        size = keep_smallest(squared_distance(x, D[j]), j, k, size, d2, indices)
    sort_ascending(indices, d2, k)


@inlined
def nearest(
    x: Any, D: Any, h: Any, half_norms: Any, k: int, margin: float,
    lows: Any, bits: Any, ranks: Any, keys: Any, sorted_keys: Any, candidates: Any, indices: Any, d2: Any,
) -> None:  # fmt: skip
    """Exactly the k nearest atoms of x, ascending: indices (k,), and d2 (k,) in float64; ties go to the lower index.

    `margin` bounds the error of a key. If the gap between the k-th key and the next is wider than the errors can be,
    the set is certain. If not, all atoms within the gap are ranked by their distance in float64.
    """
    depth, lanes = h.shape
    if not margin < MAX_MARGIN:
        nearest_of_all(x, D, k, indices, d2)
        return
    found = shortlist(h, half_norms, k, lows, bits, ranks, keys, candidates)
    certain = rank(keys, found, k, ranks) == k
    sorted_keys[k - 1], sorted_keys[k] = np.float32(3e38), np.float32(-3e38)  # for ties, which leave gaps
    size = np.uint64(0)
    for a in range(found):
        place = np.uint64(ranks[a])
        sorted_keys[place] = keys[a]
        indices[min(size, np.uint64(k))] = candidates[a]
        size += np.uint64(place < np.uint64(k))
    if certain and np.float64(sorted_keys[k]) > np.float64(sorted_keys[k - 1]) + 2.0 * margin:
        for s in range(k):
            d2[s] = squared_distance(x, D[np.uint64(indices[s])])
        return
    reach = np.float64(lows[lanes]) + 2.0 * margin
    count = 0
    for d in range(depth):
        for l in range(lanes):
            if np.float64(half_norms[d, l] - h[d, l]) <= reach:
                j = d * lanes + l
                count = keep_smallest(squared_distance(x, D[j]), j, k, count, d2, indices)
    sort_ascending(indices, d2, k)

"""Locality-constrained codes of a batch of descriptors (docs/method.md, "Coding").

In: descriptors X (n, m), atoms D (atoms, m), their product H = X D^T (n, atoms). Out: for every descriptor the indices
and values of its codes, and the certificate.

`code_nearest` solves on the k nearest atoms, in float64 throughout; for all atoms see `full_dictionary`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel
from ddlcn.engines.cpu.local_qp import solve_local_qp
from ddlcn.engines.cpu.nearest import nearest, squared_distance
from ddlcn.engines.cpu.pivot_tableau import make_workspace
from ddlcn.engines.cpu.robust_qp import solve_robust_qp, sums_to_one


@inlined
def local_distances(indices: Any, start: int, k: int, table: Any, D: Any, E: Any) -> None:
    """E (k, k): squared distances among the chosen atoms, looked up in the table, or computed where it is empty.

    Those among the first `start` are already filled in.
    """
    if table.shape[0] > 0:
        for a in range(start, k):
            row = table[np.uint64(indices[a])]
            E[a, a] = 0.0
            for b in range(a):
                distance = row[np.uint64(indices[b])]
                E[a, b] = distance
                E[b, a] = distance
        return
    for a in range(start, k):
        E[a, a] = 0.0
        for b in range(a):
            E[a, b] = squared_distance(D[indices[a]], D[indices[b]])
            E[b, a] = E[a, b]


@inlined
def write_codes(z: Any, indices: Any, k: int, out_indices: Any, out_values: Any) -> int:
    """Write the nonzero codes to a row, in the order of `indices`; returns their number."""
    count = 0
    for s in range(k):
        out_indices[count] = indices[s]
        out_values[count] = z[s]
        count += z[s] != 0.0
    return count


@kernel
def measure_distances(D: Any, first: int, step: int, table: Any) -> None:
    """table (atoms, atoms) float64: squared distances among the atoms (atoms, m), from their differences.

    For atoms first, first + step, ... and those before them, both ways: `step` threads divide the work evenly.
    """
    for i in range(first, D.shape[0], step):
        table[i, i] = 0.0
        for j in range(i):
            table[i, j] = squared_distance(D[i], D[j])
            table[j, i] = table[i, j]


@kernel
def pack_codes(indices: Any, values: Any, counts: Any, out_indices: Any, out_values: Any) -> None:
    """Concatenate the first counts[i] entries of every row i: (n, width) -> (sum of counts,)."""
    at = 0
    for i in range(counts.shape[0]):
        for s in range(counts[i]):
            out_indices[at] = indices[i, s]
            out_values[at] = values[i, s]
            at += 1


@kernel
def code_nearest(
    X: Any, D: Any, H: Any, looseness: Any, half_norms: Any, largest_norm: float, table: Any,
    k: int, beta: float, tol: float, out_indices: Any, out_values: Any, out_counts: Any, out_kkt: Any,
) -> None:  # fmt: skip
    """Codes on the k nearest atoms.

    Parameters
    ----------
    X : (n, m) float; D : (atoms, m) of the same dtype
    H : (n, depth, lanes) float32, X D^T, atom by atom, `count_lanes(k)` lanes
    looseness : (n,) float64, how many times the error of H exceeds that of a float32 product
    half_norms : (depth, lanes) float32, ||v||^2 / 2, and 3e38 for padding; largest_norm : the largest ||v||
    table : (atoms, atoms) float64 squared distances among atoms, or (0, 0)
    out_indices : (n, >= k) int32; out_values : (n, >= k) float64; out_counts : (n,) int32; out_kkt : (n,) float64
    """
    n, m = X.shape
    n_slots = H.shape[1] * H.shape[2] + 1
    lows, ranks, keys = np.empty(n_slots, np.float32), np.empty(n_slots, np.float32), np.empty(n_slots, np.float32)
    bits, sorted_keys = lows.view(np.int32), np.empty(n_slots, np.float32)
    candidates, indices = np.empty(n_slots, np.int32), np.empty(k + 1, np.int32)
    space = make_workspace(k)
    E, d2, z = space[0], space[2], space[7]
    for i in range(n):
        x = X[i]
        norm = 0.0
        for c in range(m):
            norm += np.float64(x[c]) * np.float64(x[c])
        # The standard bound on a float32 inner product of m terms, and on the rounding of its operands.
        margin = 6.0e-8 * (m + 8) * largest_norm * (np.sqrt(norm) + largest_norm) * looseness[i]
        nearest(x, D, H[i], half_norms, k, margin, lows, bits, ranks, keys, sorted_keys, candidates, indices, d2)
        local_distances(indices, 0, k, table, D, E)
        kkt = solve_local_qp(k, 0, False, beta, tol, space)
        if not sums_to_one(z, k) or kkt > tol:
            kkt = solve_robust_qp(x, D, indices, k, beta, tol, z, space[8])
        out_kkt[i] = kkt
        out_counts[i] = write_codes(z, indices, k, out_indices[i], out_values[i])

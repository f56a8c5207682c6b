"""Locality-constrained codes of a batch of descriptors (DESIGN 2, "Coding").

In: descriptors X (n, m), atoms D (atoms, m), their product H = X D^T (n, atoms). Out: for every descriptor the indices
and values of its codes, and the certificate.

`code_nearest` solves on the k nearest atoms; `code_all` solves over all atoms, by a working set that grows by the
worst violators until the certificate holds everywhere. The small systems are float64 throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel
from ddlcn.engines.cpu.careful_qp import solve_carefully
from ddlcn.engines.cpu.local_qp import BIG, EXACT, NOISE, make_workspace, solve_local_qp
from ddlcn.engines.cpu.nearest import keep_smallest, nearest, sort_ascending, squared_distance

# Atoms that join the working set of `code_all` in one round, and those it starts from: measured on Extended Yale B
# descriptors, 570 atoms, beta 0.02 and 0.05; 4 to 16 and 8 to 32 are within 10% of each other.
N_GROW = 8
N_START = 12


@inlined
def local_distances(indices: Any, k: int, table: Any, centred: Any, E: Any) -> None:
    """E (k, k): squared distances among the chosen atoms, looked up in the table, or computed where it is empty."""
    if table.shape[0] > 0:
        for a in range(k):
            row = table[np.uint64(indices[a])]
            E[a, a] = 0.0
            for b in range(a):
                distance = row[np.uint64(indices[b])]
                E[a, b] = distance
                E[b, a] = distance
        return
    for a in range(k):
        E[a, a] = 0.0
        for b in range(a):
            E[a, b] = squared_distance(centred[indices[a]], centred[indices[b]])
            E[b, a] = E[a, b]


@inlined
def write_codes(z: Any, indices: Any, k: int, out_indices: Any, out_values: Any) -> int:
    """Write the nonzero codes to a row, in the order of `indices`. Returns how many there are."""
    count = 0
    for s in range(k):
        out_indices[count] = indices[s]
        out_values[count] = z[s]
        count += z[s] != 0.0
    return count


@kernel
def measure_distances(D: Any, table: Any) -> None:
    """table (atoms, atoms) float64: squared distances among the atoms (atoms, m), from their differences."""
    for i in range(D.shape[0]):
        table[i, i] = 0.0
        for j in range(i):
            table[i, j] = squared_distance(D[i], D[j])
            table[j, i] = table[i, j]


@kernel
def pack_codes(indices: Any, values: Any, counts: Any, out_indices: Any, out_values: Any) -> None:
    """The first counts[i] entries of every row i, one row after the other: (n, width) -> (sum of counts,)."""
    at = 0
    for i in range(counts.shape[0]):
        for s in range(counts[i]):
            out_indices[at] = indices[i, s]
            out_values[at] = values[i, s]
            at += 1


@kernel
def code_nearest(
    X: Any, D: Any, H: Any, half_norms: Any, largest_norm: float, table: Any, centred: Any, k: int, beta: float, tol: float,
    out_indices: Any, out_values: Any, out_counts: Any, out_kkt: Any,
) -> None:  # fmt: skip
    """Codes on the k nearest atoms.

    Parameters
    ----------
    X : (n, m) float; D : (atoms, m) of the same dtype
    H : (n, depth, lanes) float32, X D^T, atom by atom, `count_lanes(k)` lanes
    half_norms : (depth, lanes) float32, ||v||^2 / 2, and 3e38 for what is no atom; largest_norm : the largest ||v||
    table : (atoms, atoms) float64 squared distances among atoms, or (0, 0)
    centred : (atoms, m) float64, atoms less their mean (used where the table is empty)
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
        margin = 6.0e-8 * (m + 8) * largest_norm * (np.sqrt(norm) + largest_norm)
        nearest(x, D, H[i], half_norms, k, margin, lows, bits, ranks, keys, sorted_keys, candidates, indices, d2)
        local_distances(indices, k, table, centred, E)
        kkt = solve_local_qp(k, beta, tol, False, space)
        if kkt > tol:
            kkt = solve_carefully(x, D, indices, k, beta, tol, z, space[8])
        out_kkt[i] = kkt
        sort_ascending(indices, z, k)
        out_counts[i] = write_codes(z, indices, k, out_indices[i], out_values[i])


@inlined
def gradient_everywhere(
    d2: Any, indices: Any, z: Any, k: int, h: Any, table: Any, centred: Any, point: Any, gradient: Any
) -> None:
    """The gradient C z of every atom (atoms,), up to a constant: from the table's rows, or from the reconstruction."""
    n_atoms, m = centred.shape
    if table.shape[0] > 0:
        for j in range(n_atoms):
            gradient[j] = 0.5 * d2[j]
        for s in range(k):
            if z[s] != 0.0:
                half = 0.5 * z[s]
                row = table[indices[s]]
                for j in range(n_atoms):
                    gradient[j] -= half * row[j]
        return
    for c in range(m):
        point[c] = 0.0
    for s in range(k):
        if z[s] != 0.0:
            atom = centred[indices[s]]
            for c in range(m):
                point[c] += z[s] * atom[c]
    for j in range(n_atoms):
        total = 0.0
        for c in range(m):
            total += point[c] * centred[j, c]
        gradient[j] = total - h[j]


@kernel
def code_all(
    X: Any, D: Any, H: Any, norms: Any, table: Any, centred: Any, x_norms: Any, beta: float, tol: float,
    out_indices: Any, out_values: Any, out_counts: Any, out_kkt: Any,
) -> None:  # fmt: skip
    """Codes over all atoms: solve on a working set, certify everywhere, add the worst violators, until there are none.

    Parameters
    ----------
    X : (n, m) float; D : (atoms, m) of the same dtype
    H : (n, atoms) float64, the product of descriptors and atoms, both less the atoms' mean
    norms : (atoms,) float64, squared norms of the centred atoms; x_norms : (n,) float64, of the centred descriptors
    table, centred : as for `code_nearest`
    out_indices : (n, width) int32; out_values : (n, width) float64; out_counts : (n,) int32; out_kkt : (n,) float64
        A working set never grows beyond `width`; m + 1 + N_GROW is always enough, since the atoms of a basis are
        affinely independent.
    """
    n, n_atoms, width = X.shape[0], D.shape[0], out_indices.shape[1]
    space = make_workspace(width)
    E, d2, z, local_gradient = space[0], space[2], space[7], space[8]
    indices, working = np.empty(width, np.int32), np.zeros(n_atoms, np.int8)
    all_d2, weights, gradient, point = np.empty(n_atoms), np.empty(n_atoms), np.empty(n_atoms), np.empty(D.shape[1])
    worst, worst_indices = np.empty(max(N_GROW, N_START)), np.empty(max(N_GROW, N_START), np.int32)
    for i in range(n):
        x, h = X[i], H[i]
        largest, scale, k = 0.0, 0.0, 0
        for j in range(n_atoms):
            all_d2[j] = max(norms[j] + x_norms[i] - 2.0 * h[j], 0.0)
            weights[j] = beta * np.sqrt(all_d2[j])
        for j in range(n_atoms):
            largest = max(largest, all_d2[j])
            scale = max(scale, weights[j])
            k = keep_smallest(all_d2[j], j, min(N_START, width), k, worst, worst_indices)
        if scale == 0.0:
            scale = 1.0
        threshold = max(min(tol * scale, 4.0 * EXACT * largest), 4.0 * NOISE * largest)
        for s in range(k):
            indices[s] = worst_indices[s]
        kkt = BIG
        n_rounds = 50 + n_atoms  # every round lowers the objective, so it ends long before
        for attempt in range(n_rounds):
            local_distances(indices, k, table, centred, E)
            local_scale = 0.0
            for s in range(k):
                working[indices[s]] = 1
                d2[s] = squared_distance(x, D[indices[s]])
                local_scale = max(local_scale, beta * np.sqrt(d2[s]))
            local_kkt = solve_local_qp(k, beta, tol, attempt > 0, space)
            if local_kkt > tol:
                local_kkt = solve_carefully(x, D, indices, k, beta, tol, z, local_gradient)
            local_kkt *= local_scale if local_scale > 0.0 else 1.0
            gradient_everywhere(all_d2, indices, z, k, h, table, centred, point, gradient)
            # nu from the largest code, where the two gradients must agree.
            anchor = 0
            for s in range(k):
                anchor = s if z[s] > z[anchor] else anchor
            nu = gradient[indices[anchor]] - local_gradient[anchor]
            found, violation = 0, 0.0
            for j in range(n_atoms):
                excess = abs(gradient[j] - nu) - weights[j]
                if excess > violation and working[j] == 0:
                    violation = excess
                if excess > threshold and working[j] == 0:
                    found = keep_smallest(-excess, j, N_GROW, found, worst, worst_indices)
            kkt = max(local_kkt, violation) / scale
            for s in range(k):
                working[indices[s]] = 0
            if found == 0 or attempt == n_rounds - 1:
                break
            kept = 0
            for s in range(k):
                if z[s] != 0.0:
                    indices[kept] = indices[s]
                    z[kept] = z[s]
                    kept += 1
            if kept == width:
                break
            for s in range(min(found, width - kept)):
                indices[kept] = worst_indices[s]
                z[kept] = 0.0
                kept += 1
            k = kept
        out_kkt[i] = kkt
        sort_ascending(indices, z, k)
        out_counts[i] = write_codes(z, indices, k, out_indices[i], out_values[i])

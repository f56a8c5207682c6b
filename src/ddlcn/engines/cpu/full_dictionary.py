"""Codes over all atoms (docs/method.md, "Coding"): an active set over every atom in float32, solved in float64.

In: descriptors X (n, m), atoms D (atoms, m), and float32 products and distances of both. Out: for every descriptor the
indices and values of its codes, and the certificate.

The working set is the basis and a few atoms that violate their optimality condition. They are found from the gradient
of all atoms in float32, whose error is bounded; atoms that may be violators within that error are checked again in
float64. So the certificate holds for every atom, at the cost of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel
from ddlcn.engines.cpu.local_qp import BIG, EXACT, NOISE, solve_local_qp
from ddlcn.engines.cpu.locality import local_distances, write_codes
from ddlcn.engines.cpu.nearest import keep_smallest, sort_ascending, squared_distance
from ddlcn.engines.cpu.pivot_tableau import keep_basis, make_workspace
from ddlcn.engines.cpu.robust_qp import solve_robust_qp, sums_to_one

# Atoms by which the working set expands in one round: each costs a row of the tableau, whether it stays or not.
N_EXPAND = 4
# Half the distance between neighbouring float32 numbers around 1.
ROUNDING = 6.0e-8


@inlined
def compute_gradient(
    half_d2: Any, h: Any, indices: Any, z: Any, k: int, table: Any, centred: Any, point: Any, gradient: Any
) -> None:
    """The gradient C z of every atom (atoms,) in float32, up to a constant: from the table, or the reconstruction."""
    n_atoms, m = centred.shape
    if table.shape[0] > 0:
        for j in range(n_atoms):
            gradient[j] = half_d2[j]
        for s in range(k):
            half = np.float32(0.5 * z[s])
            row = table[np.uint64(indices[s])]
            for j in range(n_atoms):
                gradient[j] -= half * row[j]
        return
    for c in range(m):
        point[c] = np.float32(0.0)
    for s in range(k):
        for c in range(m):
            point[c] += np.float32(z[s]) * centred[np.uint64(indices[s]), c]
    for j in range(n_atoms):
        total = np.float32(0.0)
        for c in range(m):
            total += point[c] * centred[j, c]
        gradient[j] = total - h[j]


@inlined
def measure_violation(x: Any, D: Any, j: int, beta: float, indices: Any, z: Any, k: int, level: float) -> float:
    """By how much atom j violates its optimality condition, in float64, from the atoms themselves."""
    d2 = squared_distance(x, D[j])
    gradient = level + 0.5 * d2
    for s in range(k):
        gradient -= 0.5 * z[s] * squared_distance(D[j], D[indices[s]])
    return float(abs(gradient) - beta * np.sqrt(d2))


@kernel
def code_all(
    X: Any, D: Any, H: Any, norms: Any, x_norms: Any, largest_norm: float, table: Any, table32: Any, centred: Any,
    beta: float, tol: float, out_indices: Any, out_values: Any, out_counts: Any, out_kkt: Any,
) -> None:  # fmt: skip
    """Codes over all atoms.

    Parameters
    ----------
    X : (n, m) float; D : (atoms, m) of the same dtype
    H : (n, atoms) float32, the product of descriptors and atoms, both less the atoms' mean
    norms : (atoms,) float32, squared norms of the centred atoms; x_norms : (n,) float32, of the centred descriptors
    largest_norm : the largest norm of a centred atom
    table : (atoms, atoms) float64 squared distances among atoms, or (0, 0); table32 : the same in float32
    centred : (atoms, m) float32, atoms less their mean
    out_indices : (n, width) int32; out_values : (n, width) float64; out_counts : (n,) int32; out_kkt : (n,) float64
        A working set never exceeds `width`; m + 2 + N_EXPAND is always sufficient, since the atoms of a basis are
        affinely independent.
    """
    n, (n_atoms, m), width = X.shape[0], D.shape, out_indices.shape[1]
    space = make_workspace(width)
    E, d2, sign, z, local_gradient = space[0], space[2], space[5], space[7], space[8]
    indices = np.empty(width, np.int32)
    half_d2, weights = np.empty(n_atoms, np.float32), np.empty(n_atoms, np.float32)
    gradient, point = np.empty(n_atoms, np.float32), np.empty(m, np.float32)
    bits, half_bits = gradient.view(np.int32), half_d2.view(np.int32)
    worst, worst_indices = np.empty(N_EXPAND), np.empty(N_EXPAND, np.int32)
    all_indices, all_codes, all_gradients = np.arange(n_atoms).astype(np.int32), np.empty(n_atoms), np.empty(n_atoms)
    zero = np.float32(0.0)
    for i in range(n):
        x, h = X[i], H[i]
        for j in range(n_atoms):
            half_d2[j] = max(np.float32(0.5) * (norms[j] + x_norms[i]) - h[j], zero)
            weights[j] = np.float32(beta) * np.sqrt(np.float32(2.0) * half_d2[j])
        least, most = half_bits[0], half_bits[0]  # floats that are not negative are ordered as their bits are
        for j in range(n_atoms):
            least, most = min(least, half_bits[j]), max(most, half_bits[j])
        first, last = 0, 0
        for j in range(n_atoms):
            first, last = max(first, j if half_bits[j] == least else 0), max(last, j if half_bits[j] == most else 0)
        largest = squared_distance(x, D[last])
        scale = beta * np.sqrt(largest)
        if scale == 0.0:
            scale = 1.0
        threshold = max(min(tol * scale, 4.0 * EXACT * largest), 4.0 * NOISE * largest)
        # Bounds on float32's error: of a squared distance, of a weight.
        reach = np.sqrt(np.float64(x_norms[i])) + largest_norm
        d2_error = ROUNDING * (m + 8) * reach * reach
        w_error = beta * d2_error / np.sqrt(max(2.0 * np.float64(half_d2[first]), d2_error))
        indices[0], k, n_known, kkt, rough, unstable = first, 1, 0, BIG, True, False
        for attempt in range(50 + 2 * n_atoms):  # every round lowers the objective, so it ends well before
            local_distances(indices, n_known, k, table, D, E)
            for s in range(n_known, k):
                d2[s] = squared_distance(x, D[np.uint64(indices[s])])
            local_scale = 0.0
            for s in range(k):
                local_scale = max(local_scale, beta * np.sqrt(d2[s]))
            kkt = solve_local_qp(k, n_known, rough, beta, tol, space)
            robust = not sums_to_one(z, k) or kkt > tol
            if robust:
                kkt = solve_robust_qp(x, D, indices, k, beta, tol, z, local_gradient)
                if kkt > tol:  # other atoms would not help
                    kkt = BIG
                    break
            kkt *= (local_scale if local_scale > 0.0 else 1.0) / scale
            if robust:  # no tableau to continue from: restart with the atoms that have a nonzero code
                unstable = True
                n_known, kept = 0, 0
                for s in range(k):
                    if z[s] != 0.0:
                        indices[kept], z[kept], d2[kept] = indices[s], z[s], d2[s]
                        kept += 1
                k = kept
            else:
                if rough and n_known > 0:
                    unstable = True  # unless one of the new atoms entered the basis
                    for s in range(n_known, k):
                        unstable &= sign[s] == 0.0
                k = n_known = keep_basis(indices, k, space)
            compute_gradient(half_d2, h, indices, z, k, table32, centred, point, gradient)
            anchor, l1_norm = 0, 0.0
            for s in range(k):
                anchor = s if abs(z[s]) > abs(z[anchor]) else anchor
                l1_norm += abs(z[s])
            pull = beta * np.sqrt(d2[anchor]) * (-1.0 if z[anchor] > 0.0 else 1.0)
            nu = gradient[indices[anchor]] - np.float32(pull)
            margin = d2_error + w_error + 4.0 * ROUNDING * (m + k + 8) * (l1_norm + 1.0) * largest_norm * largest_norm
            floor = np.float32(-margin)
            for j in range(n_atoms):
                excess = abs(gradient[j] - nu) - weights[j]
                gradient[j] = max(excess - floor, zero)
            for s in range(k):
                gradient[indices[s]] = zero
            found = 0
            for _ in range(N_EXPAND):
                most = 0
                for j in range(n_atoms):
                    most = max(most, bits[j])
                if most == 0:
                    break
                at = 0
                for j in range(n_atoms):
                    at = max(at, j if bits[j] == most else 0)
                if gradient[at] <= 2.0 * margin:  # not certain: check in float64
                    break
                kkt = max(kkt, (np.float64(gradient[at]) - margin) / scale)
                gradient[at] = zero
                worst_indices[found] = at
                found += 1
            if found == 0 and rough:  # no certain violator left: now compute the certificate
                rough = False
                continue
            if found == 0 and most != 0:
                level = pull - 0.5 * d2[anchor]
                for s in range(k):
                    level += 0.5 * z[s] * squared_distance(D[indices[anchor]], D[indices[s]])
                for j in range(n_atoms):
                    if gradient[j] > zero:
                        excess64 = measure_violation(x, D, j, beta, indices, z, k, level)
                        kkt = max(kkt, excess64 / scale)
                        if excess64 > threshold:
                            found = keep_smallest(-excess64, j, N_EXPAND, found, worst, worst_indices)
            if found == 0 or k == width:
                break
            for s in range(min(found, width - k)):
                indices[k], z[k] = worst_indices[s], 0.0
                k += 1
            rough = not unstable and attempt < 50 + n_atoms
        sound = sums_to_one(z, k)
        if not sound or kkt > tol:  # an ill-conditioned dictionary: once more, slowly, on all atoms at once
            all_kkt = solve_robust_qp(x, D, all_indices, n_atoms, beta, tol, all_codes, all_gradients)
            if not sound or all_kkt < kkt:
                out_kkt[i] = all_kkt
                out_counts[i] = write_codes(all_codes, all_indices, n_atoms, out_indices[i], out_values[i])
                continue
        out_kkt[i] = kkt
        sort_ascending(indices, z, k)
        out_counts[i] = write_codes(z, indices, k, out_indices[i], out_values[i])

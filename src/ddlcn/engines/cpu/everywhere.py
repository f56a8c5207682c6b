"""Codes over all atoms (DESIGN 2, "Coding"): an active set that looks at every atom in float32 and solves in float64.

In: descriptors X (n, m), atoms D (atoms, m), and float32 products and distances of both. Out: for every descriptor the
indices and values of its codes, and the certificate.

The working set is the basis and a few atoms that want to join it. They come from a look at the gradient of all atoms,
in float32, whose error is bounded; atoms that float32 cannot tell from violators are looked at again in float64. So the
certificate holds for every atom, at the price of a float32 look.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import inlined, kernel
from ddlcn.engines.cpu.careful_qp import solve_carefully, sums_to_one
from ddlcn.engines.cpu.local_qp import BIG, EXACT, NOISE, solve_local_qp
from ddlcn.engines.cpu.locality import local_distances, write_codes
from ddlcn.engines.cpu.nearest import keep_smallest, sort_ascending, squared_distance
from ddlcn.engines.cpu.tableau import keep_basis, make_workspace

# Atoms that may join the basis in one round: each costs a row of the tableau, whether it stays or not.
N_GROW = 4
# Half the distance between neighbouring float32 numbers around 1.
ROUNDING = 6.0e-8


@inlined
def look_everywhere(
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
def violation_of(x: Any, D: Any, j: int, beta: float, indices: Any, z: Any, k: int, level: float) -> float:
    """By how much atom j violates its condition, in float64, from the atoms themselves."""
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
        A working set never grows beyond `width`; m + 2 + N_GROW is always enough, since the atoms of a basis are
        affinely independent.
    """
    n, (n_atoms, m), width = X.shape[0], D.shape, out_indices.shape[1]
    space = make_workspace(width)
    E, d2, sign, z, local_gradient = space[0], space[2], space[5], space[7], space[8]
    indices = np.empty(width, np.int32)
    half_d2, weights = np.empty(n_atoms, np.float32), np.empty(n_atoms, np.float32)
    gradient, point = np.empty(n_atoms, np.float32), np.empty(m, np.float32)
    bits, half_bits = gradient.view(np.int32), half_d2.view(np.int32)
    worst, worst_indices = np.empty(N_GROW), np.empty(N_GROW, np.int32)
    everyone, every_code, every_gradient = np.arange(n_atoms).astype(np.int32), np.empty(n_atoms), np.empty(n_atoms)
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
        # How wrong float32 may be: of a squared distance, of a weight.
        reach = np.sqrt(np.float64(x_norms[i])) + largest_norm
        d2_error = ROUNDING * (m + 8) * reach * reach
        w_error = beta * d2_error / np.sqrt(max(2.0 * np.float64(half_d2[first]), d2_error))
        indices[0], k, n_known, kkt, rough, trouble = first, 1, 0, BIG, True, False
        for attempt in range(50 + 2 * n_atoms):  # every round lowers the objective, so it ends long before
            local_distances(indices, n_known, k, table, D, E)
            for s in range(n_known, k):
                d2[s] = squared_distance(x, D[np.uint64(indices[s])])
            local_scale = 0.0
            for s in range(k):
                local_scale = max(local_scale, beta * np.sqrt(d2[s]))
            kkt = solve_local_qp(k, n_known, rough, beta, tol, space)
            careful = not sums_to_one(z, k) or kkt > tol
            if careful:
                kkt = solve_carefully(x, D, indices, k, beta, tol, z, local_gradient)
                if kkt > tol:  # nothing to be gained by asking again with other atoms
                    kkt = BIG
                    break
            kkt *= (local_scale if local_scale > 0.0 else 1.0) / scale
            if careful:  # no tableau to go on from: start afresh, with the atoms that have a code
                trouble = True
                n_known, kept = 0, 0
                for s in range(k):
                    if z[s] != 0.0:
                        indices[kept], z[kept], d2[kept] = indices[s], z[s], d2[s]
                        kept += 1
                k = kept
            else:
                if rough and n_known > 0:
                    trouble = True  # unless one of the new atoms has found its way into the basis
                    for s in range(n_known, k):
                        trouble &= sign[s] == 0.0
                k = n_known = keep_basis(indices, k, space)
            look_everywhere(half_d2, h, indices, z, k, table32, centred, point, gradient)
            anchor, size = 0, 0.0
            for s in range(k):
                anchor = s if abs(z[s]) > abs(z[anchor]) else anchor
                size += abs(z[s])
            pull = beta * np.sqrt(d2[anchor]) * (-1.0 if z[anchor] > 0.0 else 1.0)
            nu = gradient[indices[anchor]] - np.float32(pull)
            margin = d2_error + w_error + 4.0 * ROUNDING * (m + k + 8) * (size + 1.0) * largest_norm * largest_norm
            floor = np.float32(-margin)
            for j in range(n_atoms):
                excess = abs(gradient[j] - nu) - weights[j]
                gradient[j] = max(excess - floor, zero)
            for s in range(k):
                gradient[indices[s]] = zero
            found = 0
            for _ in range(N_GROW):
                most = 0
                for j in range(n_atoms):
                    most = max(most, bits[j])
                if most == 0:
                    break
                at = 0
                for j in range(n_atoms):
                    at = max(at, j if bits[j] == most else 0)
                if gradient[at] <= 2.0 * margin:  # not certain: to be looked at in float64
                    break
                kkt = max(kkt, (np.float64(gradient[at]) - margin) / scale)
                gradient[at] = zero
                worst_indices[found] = at
                found += 1
            if found == 0 and rough:  # nothing certain any more: now with the certificate
                rough = False
                continue
            if found == 0 and most != 0:
                level = pull - 0.5 * d2[anchor]
                for s in range(k):
                    level += 0.5 * z[s] * squared_distance(D[indices[anchor]], D[indices[s]])
                for j in range(n_atoms):
                    if gradient[j] > zero:
                        excess64 = violation_of(x, D, j, beta, indices, z, k, level)
                        kkt = max(kkt, excess64 / scale)
                        if excess64 > threshold:
                            found = keep_smallest(-excess64, j, N_GROW, found, worst, worst_indices)
            if found == 0 or k == width:
                break
            for s in range(min(found, width - k)):
                indices[k], z[k] = worst_indices[s], 0.0
                k += 1
            rough = not trouble and attempt < 50 + n_atoms
        sound = sums_to_one(z, k)
        if not sound or kkt > tol:  # the worst of dictionaries: once more, slowly, on all atoms at once
            kkt_of_all = solve_carefully(x, D, everyone, n_atoms, beta, tol, every_code, every_gradient)
            if not sound or kkt_of_all < kkt:
                out_kkt[i] = kkt_of_all
                out_counts[i] = write_codes(every_code, everyone, n_atoms, out_indices[i], out_values[i])
                continue
        out_kkt[i] = kkt
        sort_ascending(indices, z, k)
        out_counts[i] = write_codes(z, indices, k, out_indices[i], out_values[i])

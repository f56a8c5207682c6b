"""Backward pass of exact codes: from gradients of the codes to gradients of atoms and descriptors (docs/joint.md).

On the support S of a code, with its signs s fixed, z solves C z + beta zeta s = nu 1, sum z = 1 (docs/method.md,
"Coding"). With g the gradient of the loss with respect to z, let a solve the same system: C a + alpha 1 = g, sum a = 0.
Then, with the residual r = x - z V and w = sum_i a_i v_i,

    d loss / d v_i  =  a_i r - z_i w - a_i beta s_i (v_i - x) / zeta_i        d loss / d x  =  minus their sum

Residual layers follow the chain back: code -> scale -> direction -> residual of the layer before -> x - v_j.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ddlcn.engines.compile import called, inlined, kernel

# A pivot below this part of the largest entry is rounding: dependent atoms, of whose codes nothing can be said.
SINGULAR = 1e-13


@inlined
def solve_in_place(M: Any, a: Any, n: int) -> bool:
    """Solve M a = b by elimination with pivoting, b in `a` (n,); M (n, n) is overwritten. False if it is singular."""
    largest = 0.0
    for i in range(n):
        for j in range(n):
            largest = max(largest, abs(M[i, j]))
    for column in range(n):
        best = column
        for i in range(column + 1, n):
            best = i if abs(M[i, column]) > abs(M[best, column]) else best
        if abs(M[best, column]) <= SINGULAR * largest:
            return False
        if best != column:
            for j in range(column, n):
                M[column, j], M[best, j] = M[best, j], M[column, j]
            a[column], a[best] = a[best], a[column]
        for i in range(column + 1, n):
            factor = M[i, column] / M[column, column]
            if factor != 0.0:
                for j in range(column + 1, n):
                    M[i, j] -= factor * M[column, j]
                a[i] -= factor * a[column]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            a[i] -= M[i, j] * a[j]
        a[i] /= M[i, i]
    return True


@called
def code_backward(
    x: Any, D: Any, first: int, indices: Any, z: Any, k: int, g: Any, beta: float, grad_D: Any, grad_x: Any,
    M: Any, a: Any, offsets: Any,
) -> None:  # fmt: skip
    """Add the gradients of one code to those of its atoms and its descriptor.

    Parameters
    ----------
    x : (m,); D : (all atoms, m), of one dtype; first : int
        The descriptor; its dictionary begins at row `first` of D.
    indices, z, g : (>= k,)
        The atoms of its code, the code, and the gradient of the loss with respect to it.
    grad_D : (all atoms, m); grad_x : (m,)
        Added to.
    M : (> k, > k); a : (> k,); offsets : (>= k + 2, m)
        Work space.
    """
    m, one = x.shape[0], x.dtype.type
    is_idle = True
    for i in range(k):
        if g[i] != 0.0:
            is_idle = False
    if is_idle or k < 2:
        return  # nobody asks; or a single code, which is one, whatever its atom is
    for i in range(k):
        atom = first + indices[i]
        for c in range(m):
            offsets[i, c] = D[atom, c] - x[c]
        for j in range(i + 1):
            product = one(0.0)
            for c in range(m):
                product += offsets[i, c] * offsets[j, c]
            M[i, j] = product
            M[j, i] = product
        M[i, k] = 1.0
        M[k, i] = 1.0
        a[i] = g[i]
    M[k, k] = 0.0
    a[k] = 0.0
    weights = np.empty(k)
    for i in range(k):
        zeta = np.sqrt(M[i, i])
        weights[i] = beta * (1.0 if z[i] > 0.0 else -1.0) / zeta if zeta > 0.0 else 0.0
    if not solve_in_place(M, a, k + 1):
        return
    # Row by row, so that the loops over the numbers of a row are vectorised.
    residual, direction = offsets[k], offsets[k + 1]
    for c in range(m):
        residual[c] = one(0.0)
        direction[c] = one(0.0)
    for i in range(k):
        own_a, own_z = one(a[i]), one(z[i])
        for c in range(m):
            residual[c] -= own_z * offsets[i, c]
            direction[c] += own_a * offsets[i, c]
    for i in range(k):
        atom, own_a, own_z, own_weight = first + indices[i], one(a[i]), one(z[i]), one(weights[i])
        for c in range(m):
            own = own_a * (residual[c] - own_weight * offsets[i, c]) - own_z * direction[c]
            grad_D[atom, c] += own
            grad_x[c] -= own


@kernel
def backpropagate_codes(
    X: Any, D: Any, firsts: Any, betas: Any, indices: Any, values: Any, counts: Any,
    deep_indices: Any, deep_values: Any, deep_counts: Any, scales: Any, grad_codes: Any, rates: Any,
    grad_D: Any, grad_X: Any,
) -> float:  # fmt: skip
    """Gradients of atoms (and descriptors) from those of the codes of all layers, and from reconstruction errors.

    Parameters
    ----------
    X : (n, m)
        Descriptors.
    D : (atoms of all layers, m), of X's dtype; firsts : (layers,); betas : (layers,)
        The dictionaries, one below the other, where each begins, and the weights of the locality penalty. Loops over
        the m numbers of a descriptor are of that dtype: in float32 they take a third of the time.
    indices, values : (n, width); counts : (n,)
        Codes of layer 1.
    deep_indices, deep_values : (layers - 1, uses, width); deep_counts : (layers - 1, uses)
        Codes of the residual layers. A use is a descriptor and one of the atoms in its code, in this order.
    scales : (layers - 1, uses)
        From `reduce_residuals`: a use with a scale of zero has no columns in the concatenated codes.
    grad_codes : (n, total width) float64
        Gradient of the loss with respect to the concatenated codes, in the order of `append_codes`.
    rates : (n,) float64
        Weight of the reconstruction error of each descriptor, 1/2 ||x - approximation||^2 summed over the layers.
    grad_D : (atoms of all layers, m), of X's dtype
        Added to.
    grad_X : (n, m), of X's dtype, or (0, 0) if nobody needs it
        Added to.

    Returns
    -------
    error : float
        The weighted reconstruction errors.
    """
    n, m = X.shape
    one = D.dtype.type
    n_layers = firsts.shape[0]
    k_max = max(indices.shape[1], deep_indices.shape[2])
    width = indices.shape[1]
    M, a = np.empty((k_max + 1, k_max + 1)), np.empty(k_max + 1)
    offsets = np.empty((k_max + 2, m), D.dtype)
    x, ignored = np.empty(m, D.dtype), np.zeros(m, D.dtype)
    g = np.empty(width)
    # Of one descriptor: every use, and every layer from the second on.
    d, coded = np.empty((n_layers, width, m), D.dtype), np.empty((n_layers, width, m), D.dtype)
    lengths, steps, norms = np.empty((n_layers, width)), np.empty((n_layers, width)), np.empty((n_layers, width))
    starts = np.empty((n_layers, width), np.int64)
    errors = np.zeros((n_layers, m), D.dtype)
    g_d, g_next, g_coded = np.empty(m, D.dtype), np.empty(m, D.dtype), np.empty(m, D.dtype)
    g_gamma = np.empty(k_max)
    total_error = 0.0
    first_use = 0
    for i in range(n):
        k, use0 = counts[i], first_use
        first_use += k
        is_idle = rates[i] == 0.0
        if is_idle:
            for s in range(grad_codes.shape[1]):
                if grad_codes[i, s] != 0.0:
                    is_idle = False
                    break
        if is_idle:
            continue
        for c in range(m):
            x[c] = X[i, c]
        # Forward: residuals, directions and approximations of every use, from the codes that are known.
        at = k
        for s in range(k):
            squares = one(0.0)
            for c in range(m):
                d[0, s, c] = x[c] - D[firsts[0] + indices[i, s], c]
                squares += d[0, s, c] * d[0, s, c]
            norms[0, s] = np.sqrt(squares)
            lengths[0, s] = norms[0, s]
        for layer in range(1, n_layers):
            for s in range(k):
                use = use0 + s
                scale = one(1.0 / norms[layer - 1, s] if norms[layer - 1, s] > 0.0 else 0.0)
                along, squares = one(0.0), one(0.0)
                for c in range(m):
                    coded[layer, s, c] = one(0.0)
                for t in range(deep_counts[layer - 1, use]):
                    atom = firsts[layer] + deep_indices[layer - 1, use, t]
                    gamma = one(deep_values[layer - 1, use, t])
                    for c in range(m):
                        coded[layer, s, c] += gamma * D[atom, c]
                for c in range(m):
                    d[layer - 1, s, c] *= scale  # from here on the direction
                    along += d[layer - 1, s, c] * coded[layer, s, c]
                    squares += coded[layer, s, c] * coded[layer, s, c]
                step = one(along / squares if along > 0.0 else 0.0)
                steps[layer, s] = step
                starts[layer, s] = at
                at += deep_counts[layer - 1, use] if values[i, s] * scales[layer - 1, use] != 0.0 else 0
                squares = one(0.0)
                for c in range(m):
                    d[layer, s, c] = d[layer - 1, s, c] - step * coded[layer, s, c]
                    squares += d[layer, s, c] * d[layer, s, c]
                norms[layer, s] = np.sqrt(squares)
                lengths[layer, s] = lengths[layer - 1, s] * norms[layer, s]
        # Reconstruction errors: approximation minus descriptor, summed from the last layer back to each.
        if rates[i] > 0.0:
            for layer in range(n_layers):
                for c in range(m):
                    error = 0.0
                    for s in range(k):
                        if layer == 0:
                            error -= values[i, s] * d[0, s, c] * (norms[0, s] if n_layers > 1 else 1.0)
                        else:
                            error += values[i, s] * lengths[layer - 1, s] * steps[layer, s] * coded[layer, s, c]
                    errors[layer, c] = error + (errors[layer - 1, c] if layer > 0 else 0.0)
                    total_error += 0.5 * rates[i] * errors[layer, c] * errors[layer, c]
            for c in range(m):
                below = 0.0
                for layer in range(n_layers - 1, -1, -1):
                    below += rates[i] * errors[layer, c]
                    errors[layer, c] = below
                    if layer == 0 and grad_X.shape[0] > 0:
                        grad_X[i, c] -= below
        else:
            errors[:] = 0.0
        # Backward, use by use, from the last layer to the second.
        for s in range(k):
            use, z = use0 + s, values[i, s]
            g[s] = grad_codes[i, s]
            g_length = 0.0
            for c in range(m):
                g_next[c] = one(0.0)  # with respect to what this layer leaves, its length taken out
            is_asked = rates[i] > 0.0
            for layer in range(n_layers - 1, 0, -1):
                n_codes = deep_counts[layer - 1, use]
                length, step = lengths[layer - 1, s], steps[layer, s]
                scale = length * step
                g_scale = 0.0
                for t in range(n_codes):
                    g_gamma[t] = 0.0
                if z * scales[layer - 1, use] != 0.0:
                    for t in range(n_codes):
                        own, gamma = grad_codes[i, starts[layer, s] + t], deep_values[layer - 1, use, t]
                        g[s] += own * scale * gamma
                        g_scale += own * z * gamma
                        g_gamma[t] = own * z * scale
                        is_asked = is_asked or own != 0.0
                if not is_asked:
                    continue  # no code of this layer or of a deeper one carries gradient
                # The error of the approximation: its part of this layer is z * scale * coded.
                pull, squares, left = one(0.0), one(0.0), one(0.0)
                for c in range(m):
                    pull += errors[layer, c] * coded[layer, s, c]
                    squares += coded[layer, s, c] * coded[layer, s, c]
                    left += g_next[c] * coded[layer, s, c]
                g[s] += scale * pull
                g_scale += z * pull
                g_step = g_scale * length - left
                g_length += g_scale * step
                along_coded = one(g_step / squares if step > 0.0 else 0.0)
                own_scale, own_step, twice = one(z * scale), one(step), one(2.0 * step)
                for c in range(m):
                    g_d[c] = g_next[c] + along_coded * coded[layer, s, c]
                    g_coded[c] = (
                        own_scale * errors[layer, c]
                        - own_step * g_next[c]
                        + along_coded * (d[layer - 1, s, c] - twice * coded[layer, s, c])
                    )
                for t in range(n_codes):
                    atom = firsts[layer] + deep_indices[layer - 1, use, t]
                    gamma, pull = one(deep_values[layer - 1, use, t]), one(0.0)
                    for c in range(m):
                        pull += g_coded[c] * D[atom, c]
                        grad_D[atom, c] += gamma * g_coded[c]
                    g_gamma[t] += pull
                code_backward(
                    d[layer - 1, s], D, firsts[layer], deep_indices[layer - 1, use], deep_values[layer - 1, use],
                    n_codes, g_gamma, betas[layer], grad_D, g_d, M, a, offsets,
                )  # fmt: skip
                # To the residual that this direction came from, in units of the length before.
                norm, along = one(norms[layer - 1, s]), one(0.0)
                for c in range(m):
                    along += g_d[c] * d[layer - 1, s, c]
                longer = one(g_length * (lengths[layer - 2, s] if layer > 1 else 1.0))
                inverse = one(1.0 / norm if norm > 0.0 else 0.0)
                for c in range(m):
                    direction = d[layer - 1, s, c]
                    g_next[c] = inverse * (g_d[c] - along * direction) + longer * direction
                g_length *= norm if layer > 1 else 0.0
            # v_j = x - r_j enters through its residual, and through the approximation of layer 1.
            atom, own_z, pull = firsts[0] + indices[i, s], one(z), one(0.0)
            for c in range(m):
                pull += errors[0, c] * D[atom, c]
                grad_D[atom, c] += own_z * errors[0, c] - g_next[c]
            g[s] += pull
            if grad_X.shape[0] > 0:
                for c in range(m):
                    grad_X[i, c] += g_next[c]
        code_backward(
            x, D, firsts[0], indices[i], values[i], k, g, betas[0], grad_D,
            grad_X[i] if grad_X.shape[0] > 0 else ignored, M, a, offsets,
        )  # fmt: skip
    return total_error

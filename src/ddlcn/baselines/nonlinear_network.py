"""The network of NDL and SNDL: vectors in, vectors of unit norm out, and its training towards given ones.

    f(x) = h_L / ||h_L||,   h_l = tanh(h_{l-1} W_l + b_l),   h_0 = x
    min over W_l, b_l   weight / 2 ||F - T||^2 + mu / 2 ||X - F G||^2 + nu / 2 sum_l ||W_l||^2,    F = f(X)

for targets T (n, p) and a decoder G (p, m) that are held fixed. The gradient is written out; no torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize
from sklearn.preprocessing import normalize

from ddlcn.baselines.components import find_components

Array = NDArray[Any]
Network = list[tuple[Array, Array]]
# Norm of a network's output below which it counts as zero.
MIN_NORM = 1e-12


def start_network(X: Array, sizes: tuple[int, ...], gain: float) -> Network:
    """One pair (W, b) per layer: principal components of what enters it, the first with standard deviation `gain`.

    A layer has at most as many units as there are components.
    """
    layers, H = [], X
    for size in sizes:
        mean, components = find_components(H, size)
        if len(components) == 0:  # all images are equal
            components = np.eye(1, H.shape[1])
        spread = max(float(((H - mean) @ components[0]).std()), MIN_NORM) if np.ptp(H, axis=0).any() else 1.0
        W = np.ascontiguousarray(components.T) * (gain / spread)
        layers.append((W, -mean @ W))
        H = np.tanh(H @ W + layers[-1][1])
    return layers


def run_network(X: Array, layers: Network) -> list[Array]:
    """X (n, m) and the output (n, units) of every layer, not yet of unit norm."""
    outputs = [X]
    for W, b in layers:
        outputs.append(np.tanh(outputs[-1] @ W + b))
    return outputs


def embed(X: Array, layers: Network) -> Array:
    """f(X) (n, p), rows of unit norm; a row of zeros stays zero."""
    return np.asarray(normalize(run_network(X, layers)[-1]))


def measure_network(
    X: Array, layers: Network, T: Array, weight: float, G: Array, mu: float, nu: float
) -> tuple[float, Network]:
    """weight / 2 ||F - T||^2 + mu / 2 ||X - F G||^2 + nu / 2 sum ||W||^2 with F = f(X), and its gradient.

    Parameters
    ----------
    X, T : ndarrays (n, m) and (n, p)
    G : ndarray (p, m)
    """
    outputs = run_network(X, layers)
    norms = np.maximum(np.linalg.norm(outputs[-1], axis=1, keepdims=True), MIN_NORM)
    F = outputs[-1] / norms
    off, left = F - T, F @ G - X
    value = weight * (off**2).sum() + mu * (left**2).sum() + nu * sum(float((W**2).sum()) for W, _ in layers)
    slope = weight * off + mu * left @ G.T
    slope = (slope - (slope * F).sum(axis=1, keepdims=True) * F) / norms
    gradient: Network = []
    for (W, _), H, out in zip(layers[::-1], outputs[-2::-1], outputs[:0:-1], strict=True):
        slope = slope * (1 - out**2)
        gradient.append((H.T @ slope + nu * W, slope.sum(axis=0)))
        slope = slope @ W.T
    return float(value) / 2, gradient[::-1]


def step_network(
    X: Array, layers: Network, T: Array, weight: float, G: Array, mu: float, nu: float, n_steps: int
) -> Network:
    """A network with a lower `measure_network`, by at most `n_steps` steps of L-BFGS."""
    shapes = [part.shape for layer in layers for part in layer]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def pack(network: Network) -> Array:
        return np.concatenate([part.ravel() for layer in network for part in layer])

    def unpack(flat: Array) -> Network:
        parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def look(flat: Array) -> tuple[float, Array]:
        value, gradient = measure_network(X, unpack(flat), T, weight, G, mu, nu)
        return value, pack(gradient)

    return unpack(optimize.minimize(look, pack(layers), jac=True, method="L-BFGS-B", options={"maxiter": n_steps}).x)


def fit_decoder(F: Array, X: Array, mu: float, nu: float) -> Array:
    """G (p, m) of min mu ||X - F G||^2 + nu ||G||^2."""
    gram = mu * F.T @ F
    gram[np.diag_indices_from(gram)] += nu
    return np.asarray(linalg.solve(gram, mu * F.T @ X, assume_a="pos"))

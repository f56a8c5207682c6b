"""Convolutional k-means (Dundar, Jin and Culurciello 2015), the answers of pictures to its filters, connections.

A window is larger than a filter, and only the place in it that answers most to any filter counts. So a pattern that
lies elsewhere in the window needs no filter of its own. With w_i(t) the patch of window i at place t:

    max_D  sum_i max_{j, t} (d_j . w_i(t))^2     subject to  ||d_j|| = 1

Filter and place are chosen, then d_j <- d_j + sum_i (d_j . w_i(t)) w_i(t) over its windows and scaled to unit norm: a
step of the power iteration. Neither lowers the sum. A window of the size of a filter gives spherical k-means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ddlcn.baselines.base import Labels

Floats = NDArray[np.float32]

# Pictures that a thread works on at a time.
BATCH = 32
# Contrast below this share of the mean variance of patches is not amplified to that of others.
FLAT = 0.1
# Added to the eigenvalues before whitening (Coates, Ng and Lee 2011); patches have variance one.
RIDGE = 0.1
# Of the connections: steps of Adam (Kingma and Ba 2015), pictures in each, step size, decay of V.
N_STEPS, N_PICTURES, STEP, DECAY = 200, 256, 0.005, 1e-3


def make_batches(n: int) -> list[slice]:
    """Batches of n pictures."""
    return [slice(start, min(start + BATCH, n)) for start in range(0, n, BATCH)]


def cut_patches(maps: Floats, size: int) -> Floats:
    """All patches of maps (n, H, W, c), as rows: (n, H - size + 1, W - size + 1, size^2 c)."""
    views = sliding_window_view(maps, (size, size), axis=(1, 2))  # (n, H', W', c, size, size)
    return np.ascontiguousarray(views).reshape(*views.shape[:3], -1)


@dataclass(frozen=True)
class Scaling:
    """Contrast normalisation and whitening of patches x (m,): (x - mean of x) / sqrt(variance of x + flat) V.

    Attributes
    ----------
    flat : float
    whitening : ndarray (m, m)
        Symmetric; the identity where patches are not whitened.
    """

    flat: float
    whitening: Floats

    @classmethod
    def learn(cls, patches: Floats, whiten: bool) -> Scaling:
        """From patches (n, m)."""
        flat = FLAT * float(patches.var(axis=1).mean()) + 1e-12
        identity = np.eye(patches.shape[1], dtype=np.float32)
        if not whiten:
            return cls(flat, identity)
        scaled = cls(flat, identity).apply(patches)
        values, vectors = np.linalg.eigh((scaled.T @ scaled).astype(np.float64) / len(scaled))
        whitening = (vectors / np.sqrt(np.maximum(values, 0.0) + RIDGE)) @ vectors.T
        return cls(flat, whitening.astype(np.float32))

    def apply(self, patches: Floats) -> Floats:
        """Patches (..., m), scaled and whitened."""
        centred = patches - patches.mean(axis=-1, keepdims=True)
        centred /= np.sqrt(np.einsum("...i,...i->...", centred, centred)[..., None] / patches.shape[-1] + self.flat)
        return np.asarray(centred @ self.whitening)


def draw_windows(maps: Floats, side: int, n_windows: int, rng: np.random.Generator) -> Floats:
    """Windows (n_windows, side, side, c) of maps (n, H, W, c), at random places."""
    n, height, width = maps.shape[:3]
    which = rng.integers(n, size=n_windows)
    tops, lefts = rng.integers(height - side + 1, size=n_windows), rng.integers(width - side + 1, size=n_windows)
    views = sliding_window_view(maps, (side, side), axis=(1, 2))
    return np.ascontiguousarray(np.moveaxis(views[which, tops, lefts], 1, -1))


def learn_filters(places: Floats, n_filters: int, n_iter: int, rng: np.random.Generator) -> tuple[Floats, list[float]]:
    """Filters (at most n_filters, m), rows of unit norm, from the scaled patches of windows (n, places, m).

    Returns the filters and the objective, per window, before every iteration.
    """
    n, n_places, m = places.shape
    starts = places[np.arange(n), rng.integers(n_places, size=n)][rng.permutation(n)]
    starts = starts[np.linalg.norm(starts, axis=1) > 1e-6][:n_filters]
    if len(starts) == 0:  # nothing but flat windows
        starts = rng.normal(size=(1, m)).astype(np.float32)
    D: Floats = normalize(starts)
    objective = []
    for _ in range(n_iter):
        total, energy = D.copy(), 0.0
        for start in range(0, n, 1024):
            block = places[start : start + 1024]
            answers = (block.reshape(-1, m) @ D.T).reshape(len(block), -1)
            best = np.abs(answers).argmax(axis=1)
            value = answers[np.arange(len(block)), best]
            chosen = block[np.arange(len(block)), best // len(D)]
            np.add.at(total, best % len(D), value[:, None] * chosen)
            energy += float(np.square(value, dtype=np.float64).sum())
        D = normalize(total)
        objective.append(energy / n)
    return D, objective


def pool_cells(maps: Floats, n_cells: int) -> Floats:
    """The largest answer in every cell of a grid: maps (n, H, W, k) to (n, rows, columns, k).

    `n_cells` rows and columns, or as many as there are pixels.
    """
    for axis in (1, 2):
        side = maps.shape[axis]
        starts = np.arange(min(n_cells, side)) * side // min(n_cells, side)
        maps = np.maximum.reduceat(maps, starts, axis=axis)
    return maps


def pool_pairs(maps: Floats) -> Floats:
    """The largest of every 2 x 2: maps (n, H, W, k) to (n, H // 2, W // 2, k). A last odd row or column is left out."""
    n, height, width, k = maps.shape
    even = maps[:, : height // 2 * 2, : width // 2 * 2]
    return np.asarray(even.reshape(n, height // 2, 2, width // 2, 2, k).max(axis=(2, 4)))


def rectify(answers: Floats, threshold: float | None) -> Floats:
    """Answers r (..., k) of patches to k filters: max(0, r), or max(0, r - mean of r - threshold * deviation of r)."""
    if threshold is None or answers.shape[-1] == 1:
        return np.maximum(answers, 0.0)
    level = answers.mean(axis=-1, keepdims=True) + threshold * answers.std(axis=-1, keepdims=True)
    return np.asarray(np.maximum(answers - level, 0.0))


def to_unit(rows: Floats) -> Floats:
    """Rows (n, m) of unit norm; a zero row stays zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6), np.float32)


def learn_connections(cells: Floats, y: Labels, start: Floats, rng: np.random.Generator) -> Floats:
    """Connections A (maps, k), rows of unit norm, from pooled answers (n, rows, columns, k), class indices and a start.

    A softmax classifier of max(0, A f) is trained beside A and dropped.
    """
    n, k = len(cells), cells.shape[-1]
    F = cells.reshape(n, -1, k) / max(float(np.sqrt(np.square(cells).mean())), 1e-6)  # (n, cells, k)
    n_classes = int(y.max()) + 1
    A, V = start.copy(), np.zeros((F.shape[1] * len(start), n_classes), np.float32)
    adam = [_Adam(A), _Adam(V)]
    for _ in range(N_STEPS):
        rows = rng.choice(n, N_PICTURES) if n > N_PICTURES else np.arange(n)
        H = np.maximum(F[rows] @ A.T, 0.0)
        flat = H.reshape(len(rows), -1)
        scores = flat @ V
        scores -= scores.max(axis=1, keepdims=True)
        error = np.exp(scores)
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(rows)), y[rows]] -= 1.0
        error /= len(rows)
        back = (error @ V.T).reshape(H.shape) * (H > 0)
        adam[0].step(A, back.reshape(-1, len(A)).T @ F[rows].reshape(-1, k))
        adam[1].step(V, flat.T @ error + DECAY * V)
    return to_unit(A)


class _Adam:
    """Running means of the gradient of an array, and of its square."""

    def __init__(self, values: Floats) -> None:
        self._mean, self._square, self._t = np.zeros_like(values), np.zeros_like(values), 0

    def step(self, values: Floats, gradient: Floats) -> None:
        """Change `values` in place."""
        self._t += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient**2 - self._square)
        scale = np.sqrt(1.0 - 0.999**self._t) / (1.0 - 0.9**self._t)
        values -= (STEP * scale) * self._mean / (np.sqrt(self._square) + 1e-8)

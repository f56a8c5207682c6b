"""A convolutional layer in place of a dictionary layer: as many filters, and a rectifier, over the descriptor grid.

Layer 1: D_1 filters of the descriptors' width, drawn at random (normal, unit norm), moved over
the grid of descriptors; response max(0, w . x - b), with b the mean response of that filter to descriptors of the
dictionary images, so that about half of all responses are positive. Layer l: D_l filters over the responses of layer
l - 1, made in the same way. All layers' responses are pooled as codes are, and go to the same classifier. Nothing is
trained by gradients here: the paper's dictionaries are not trained on the classification error either. Filters that are
trained: `ddlcn.experiments.trained_filters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding import CodeBlock

Array = NDArray[Any]


class FilterBank:
    """Layers of filters, with the interface of a coder.

    Parameters
    ----------
    sample : ndarray (n, m)
        Descriptors that the biases are computed from.
    sizes : sequence of int
        Filters per layer.
    seed : SeedSequence

    Attributes
    ----------
    layers : list of (filters (D_{l-1}, D_l), biases (D_l,))
    """

    def __init__(self, sample: Array, sizes: Sequence[int], seed: np.random.SeedSequence) -> None:
        rng = np.random.default_rng(seed)
        self.n_dimensions, self.dtype, self.n_atoms = sample.shape[1], sample.dtype, sum(sizes)
        self.layers: list[tuple[Array, Array]] = []
        below = sample
        for size in sizes:
            W = rng.normal(size=(below.shape[1], size)).astype(sample.dtype)
            W /= np.linalg.norm(W, axis=0)
            bias = (below @ W).mean(axis=0)
            self.layers.append((W, bias))
            below = np.maximum(below @ W - bias, 0.0)

    def encode_block(self, X: Array) -> CodeBlock:
        """Responses of all layers' filters to descriptors X (n, m), as codes."""
        below, responses = X, []
        for W, bias in self.layers:
            below = np.maximum(below @ W - bias, 0.0)
            responses.append(below)
        Z = np.hstack(responses)  # (n, D_1 + D_2 + ...)
        rows, columns = np.nonzero(Z > 0.0)  # row by row, in order of filters
        counts = np.bincount(rows, minlength=len(X))
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        indices, values = np.zeros(Z.shape, np.int32), np.zeros(Z.shape)
        indices[rows, places], values[rows, places] = columns, Z[rows, columns]
        return CodeBlock(indices, values, counts.astype(np.int32), np.zeros(len(X)))

"""Backward pass of augmented layers: they weigh the atoms of the first by the paths through the others.

The weights sqrt(P) and sqrt(N) (docs/method.md 2.1) depend on the codes of every layer's atoms over the next layer's,
so on all dictionaries, but on no descriptor: one pass per step, whatever the number of images.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import TOL
from ddlcn.coding.locality import CodeBlock, LocalityCoder, TracedCodes, trace
from ddlcn.configuration import BranchConfig
from ddlcn.joint.passes import backpropagate

Array = NDArray[Any]


def backpropagate_paths(
    dictionaries: Sequence[Array], config: BranchConfig, grad_plus: Array, grad_minus: Array, rate: float
) -> tuple[list[Array], float]:
    """Gradients of the atoms of all layers from those of the path weights.

    Parameters
    ----------
    dictionaries : sequence of ndarrays (D_l, m)
    config : BranchConfig
    grad_plus, grad_minus : ndarrays (D_1,)
        Of sqrt(P) and sqrt(N).
    rate : float
        Weight of the mean reconstruction error of every layer's atoms by the next layer.

    Returns
    -------
    grads : list of ndarrays (D_l, m), float64
    error : float
        The weighted reconstruction errors.
    """
    power = config.pool_power
    atoms = [np.asarray(each, np.float64) for each in dictionaries]
    grads = [np.zeros(each.shape) for each in atoms]
    codes = [
        trace(LocalityCoder(upper, config.beta[l], config.n_neighbors[l], TOL), lower)
        for l, (lower, upper) in enumerate(pairwise(atoms), 1)
    ]
    # Forward, from the last layer upward, as `coding.augmented.path_weights` does.
    P, N = [np.ones(len(atoms[-1]))], [np.zeros(len(atoms[-1]))]
    tables = [_Table(traced.codes, power) for traced in codes]
    for table in reversed(tables):
        above, below = table.combine(P[0], N[0])
        P.insert(0, 1.0 + above)
        N.insert(0, below)
    grad_P = grad_plus * 0.5 / np.sqrt(P[0])
    grad_N = np.where(N[0] > 0.0, grad_minus * 0.5 / np.sqrt(np.maximum(N[0], 1e-300)), 0.0)
    error = 0.0
    for l, (table, traced) in enumerate(zip(tables, codes, strict=True)):
        grad_codes, grad_P, grad_N = table.backward(grad_P, grad_N, P[l + 1], N[l + 1])
        own, own_error = _backpropagate(atoms[l], atoms[l + 1], config.beta[l + 1], traced, grad_codes, rate, grads[l])
        grads[l + 1] += own
        error += own_error
    return grads, error


def _backpropagate(
    lower: Array, upper: Array, beta: float, traced: TracedCodes, grad_codes: Array, rate: float, grad_lower: Array
) -> tuple[Array, float]:
    rates = np.full(len(lower), rate / len(lower))
    return backpropagate(lower, [upper], (beta,), traced, grad_codes, rates, grad_lower)


class _Table:
    """|gamma|^(2 power) of one layer's atoms over the next layer's, by sign."""

    def __init__(self, codes: CodeBlock, power: float) -> None:
        self._shape = codes.values.shape
        self._used = np.arange(self._shape[1]) < codes.counts[:, None]
        self._row, _ = np.nonzero(self._used)
        self._column = codes.indices[self._used]
        gamma = codes.values[self._used]
        self._is_positive = gamma > 0.0
        self._values = np.abs(gamma) ** (2.0 * power)
        self._slopes = np.sign(gamma) * 2.0 * power * np.abs(gamma) ** (2.0 * power - 1.0)

    def combine(self, P: Array, N: Array) -> tuple[Array, Array]:
        """Sums over paths (rows,) that begin positive and negative, from those (columns,) of the next layer."""
        same, turned = self._take(P, N)
        n = self._shape[0]
        return (
            np.bincount(self._row, self._values * same, minlength=n),
            np.bincount(self._row, self._values * turned, minlength=n),
        )

    def backward(self, grad_P: Array, grad_N: Array, P: Array, N: Array) -> tuple[Array, Array, Array]:
        """Gradients of the codes (rows, width), and of P and N (columns,) of the next layer."""
        same, turned = self._take(P, N)
        of_codes = np.zeros(self._shape)
        of_codes[self._used] = self._slopes * (grad_P[self._row] * same + grad_N[self._row] * turned)
        own_P = np.where(self._is_positive, grad_P[self._row], grad_N[self._row])
        own_N = np.where(self._is_positive, grad_N[self._row], grad_P[self._row])
        n = len(P)
        return (
            of_codes,
            np.bincount(self._column, self._values * own_P, minlength=n),
            np.bincount(self._column, self._values * own_N, minlength=n),
        )

    def _take(self, P: Array, N: Array) -> tuple[Array, Array]:
        """What each code multiplies: P of a positive one for paths that stay positive, N of a negative one."""
        p, n = P[self._column], N[self._column]
        return np.where(self._is_positive, p, n), np.where(self._is_positive, n, p)

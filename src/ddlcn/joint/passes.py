"""Forward and backward pass of every block of the feature (docs/joint.md).

Forward: the descriptors of a few images in, their features out, in float64. Backward: the gradient of the loss with
respect to the features in, gradients of the atoms out. Codes are the exact ones; on their active sets the gradient is
exact too. Only the codes that won a cell carry it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.blocks import Batch, Branch, CodedBlock, FirstOrderBlock
from ddlcn.coding.locality import CodeBlock, TracedCodes, trace
from ddlcn.engines import get_engine
from ddlcn.pooling import count_cells, pool

Array = NDArray[Any]

# Roots have no slope at zero: below this, that of here.
SMALLEST = 1e-6


class BlockGradient(NamedTuple):
    """What one batch says about the parameters of a block.

    Attributes
    ----------
    atoms : ndarray (atoms of the layers that the codes see, m)
        One dictionary below the other.
    plus, minus : ndarrays (atoms,), or (0,)
        Of the weights of largest and of smallest codes.
    error : float
        Weighted reconstruction errors of the descriptors.
    """

    atoms: Array
    plus: Array
    minus: Array
    error: float

    def add(self, other: BlockGradient) -> BlockGradient:
        """Of two batches together."""
        plus, minus = self.plus + other.plus, self.minus + other.minus
        return BlockGradient(self.atoms + other.atoms, plus, minus, self.error + other.error)


class Pass(Protocol):
    """One batch through one block."""

    features: Any  # csr_array (images, columns), float64

    def backward(self, grad: Array, rates: Array) -> BlockGradient | None:
        """Gradients, from those of the features' nonzeros (nonzeros,); None where there is nothing to learn.

        `rates` (n,): how much the reconstruction error of each descriptor counts.
        """


def start_pass(branch: Branch, block: Any, batch: Batch) -> Pass:
    """The forward pass of a batch through one block of a branch."""
    if isinstance(block, CodedBlock):
        return CodedPass(branch, block, batch)
    if isinstance(block, FirstOrderBlock):
        return FirstOrderPass(branch, block, batch)
    return FixedPass(block.pool(batch).astype(np.float64))


class FixedPass:
    """A block without atoms: what a backbone says of the image as a whole."""

    def __init__(self, features: Any) -> None:
        self.features = features

    def backward(self, grad: Array, rates: Array) -> None:
        return None


class CodedPass:
    """Codes of one or several layers, max pooled."""

    def __init__(self, branch: Branch, block: CodedBlock, batch: Batch) -> None:
        config = branch.config
        # Augmented layers below the first see atoms, not descriptors: `joint.paths` has their part.
        n_layers = len(branch.dictionaries) if config.depth == "residual" else 1
        self._dictionaries, self._betas = branch.dictionaries[:n_layers], config.beta[:n_layers]
        self._block, self._X = block, batch.X
        self._traced = trace(block.coder, batch.X)
        codes = self._traced.codes
        weights = (block.plus, block.minus)
        pooled = pool(codes, batch.cells, batch.starts, block.pyramid, *weights, block.pool_power)
        n_atoms = len(block.plus)
        half, place = np.divmod(pooled.features.indices, count_cells(block.pyramid) * n_atoms)
        self._is_minus, self._atoms, self._winners = half == 1, place % n_atoms, pooled.winners
        self._signs = np.where(self._is_minus, -1.0, 1.0)
        self._weights = block.plus[self._atoms]
        if block.minus is not None:
            self._weights = np.where(self._is_minus, block.minus[self._atoms], self._weights)
        self._extremes = self._signs * codes.values.ravel()[pooled.winners]
        self._powers = np.sign(self._extremes) * np.abs(self._extremes) ** block.pool_power
        self._normed = _Normed(self._weights * self._powers, pooled.features)
        self.features = self._normed.features

    def backward(self, grad: Array, rates: Array) -> BlockGradient:
        block, power, codes = self._block, self._block.pool_power, self._traced.codes
        grad = self._normed.backward(grad)
        n_atoms = len(block.plus)
        by_weight = grad * self._powers
        minus: Array = np.empty(0)
        if block.minus is not None:
            minus = np.bincount(self._atoms[self._is_minus], by_weight[self._is_minus], minlength=n_atoms)
        plus = np.bincount(self._atoms[~self._is_minus], by_weight[~self._is_minus], minlength=n_atoms)
        slopes = self._weights * self._signs
        if power != 1.0:
            slopes = slopes * power * np.maximum(np.abs(self._extremes), SMALLEST) ** (power - 1.0)
        of_codes = np.bincount(self._winners, grad * slopes, minlength=codes.values.size).reshape(codes.values.shape)
        atoms, error = backpropagate(self._X, self._dictionaries, self._betas, self._traced, of_codes, rates)
        return BlockGradient(atoms, plus, minus, error)


class FirstOrderPass:
    """Averages of descriptors around the atoms of a shared dictionary. Their means and deviations stay as learned."""

    def __init__(self, branch: Branch, block: FirstOrderBlock, batch: Batch) -> None:
        self._beta, self._pooling = branch.config.beta[0], block.pooling
        self._cells, n_images = batch.cells, len(batch.starts) - 1
        self._images = np.repeat(np.arange(n_images), np.diff(batch.starts))
        self._unit, self._Y = self._pooling.project(batch.X)
        self._traced = trace(self._pooling.coder, self._unit)
        codes = self._traced.layer1
        shape = (n_images, block.n_cells, *self._pooling.shape)
        sums, self._sizes = np.zeros(shape), np.zeros(shape[:3])
        get_engine().sum_first_order(
            self._Y, codes.indices, codes.values, codes.counts, self._cells, self._images, sums, self._sizes
        )
        self._totals = np.maximum(self._sizes.sum(axis=2), 1e-300)[:, :, None, None]  # (images, cells, 1, 1)
        deviations = sums - self._sizes[..., None] * self._pooling.model.means
        self._values = deviations * self._pooling.inverse_scales / self._totals
        roots = np.sign(self._values) * np.sqrt(np.abs(self._values))
        dense = sparse.csr_array(roots.reshape(n_images, -1))
        self._normed = _Normed(dense.data, dense)
        self._filled = np.flatnonzero(roots.ravel())
        self.features = self._normed.features

    def backward(self, grad: Array, rates: Array) -> BlockGradient:
        pooling, codes = self._pooling, self._traced.layer1
        of_roots = np.zeros(self._values.size)
        of_roots[self._filled] = self._normed.backward(grad)
        of_values = of_roots.reshape(self._values.shape) * 0.5 / np.sqrt(np.maximum(np.abs(self._values), SMALLEST**2))
        of_totals = -(of_values * self._values / self._totals).sum(axis=(2, 3))  # (images, cells)
        of_sums = of_values * pooling.inverse_scales / self._totals
        of_sizes = of_totals[:, :, None] - (of_sums * pooling.model.means).sum(axis=3)
        of_codes = np.zeros(codes.values.shape)
        get_engine().spread_first_order(
            self._Y, codes.indices, codes.values, codes.counts, self._cells, self._images, of_sums, of_sizes, of_codes
        )
        atoms, error = backpropagate(self._unit, [pooling.model.atoms], (self._beta,), self._traced, of_codes, rates)
        return BlockGradient(atoms, np.empty(0), np.empty(0), error)


class _Normed:
    """Rows scaled to unit norm, and back."""

    def __init__(self, values: Array, like: Any) -> None:
        self._rows = np.repeat(np.arange(like.shape[0]), np.diff(like.indptr))
        norms = np.sqrt(np.bincount(self._rows, values * values, minlength=like.shape[0]))
        self._norms = np.where(norms > 0.0, norms, 1.0)[self._rows]
        self.features = sparse.csr_array((values / self._norms, like.indices, like.indptr), shape=like.shape)

    def backward(self, grad: Array) -> Array:
        data = self.features.data
        along = np.bincount(self._rows, grad * data, minlength=self.features.shape[0])
        return np.asarray((grad - along[self._rows] * data) / self._norms)


def backpropagate(
    X: Array,
    dictionaries: Sequence[Array],
    betas: Sequence[float],
    traced: TracedCodes,
    grad_codes: Array,
    rates: Array,
    grad_X: Array | None = None,
) -> tuple[Array, float]:
    """Gradients of all atoms from those of the codes.

    Parameters
    ----------
    X : ndarray (n, m)
    dictionaries : sequence of ndarrays (D_l, m); betas : sequence of float
    traced : TracedCodes
    grad_codes : ndarray (n, width of the concatenated codes)
    rates : ndarray (n,)
        Weights of the descriptors' reconstruction errors.
    grad_X : ndarray (n, m), optional
        Gradients of the descriptors are added to it.

    Returns
    -------
    grad : ndarray (sum of D_l, m), of X's dtype
    error : float
        The weighted reconstruction errors of all layers.
    """
    D = np.concatenate([np.asarray(atoms, X.dtype) for atoms in dictionaries])
    firsts = np.cumsum([0] + [len(atoms) for atoms in dictionaries[:-1]])
    grad = np.zeros_like(D)
    layer1 = traced.layer1
    deep = _stack(traced.deeper, int(layer1.counts.sum()))
    scales = np.array(traced.scales).reshape(len(traced.deeper), deep[2].shape[1])
    error = get_engine().backpropagate_codes(
        X, D, firsts, np.asarray(betas, np.float64), layer1.indices, layer1.values, layer1.counts, *deep, scales,
        grad_codes, rates, grad, np.empty((0, 0), X.dtype) if grad_X is None else grad_X,
    )  # fmt: skip
    return grad, error


def _stack(blocks: Sequence[CodeBlock], n_uses: int) -> tuple[Array, Array, Array]:
    """Codes of several layers as arrays (layers, uses, width), and their counts (layers, uses)."""
    width = max((block.indices.shape[1] for block in blocks), default=0)
    indices, values = np.zeros((len(blocks), n_uses, width), np.int32), np.zeros((len(blocks), n_uses, width))
    counts = np.zeros((len(blocks), n_uses), np.int32)
    for layer, block in enumerate(blocks):
        own = block.indices.shape[1]
        indices[layer, :, :own], values[layer, :, :own], counts[layer] = block.indices, block.values, block.counts
    return indices, values, counts

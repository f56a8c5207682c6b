"""Residual depth: deeper layers code what the layers above left over (DESIGN 2.2).

For every atom j in the code of a descriptor x, layer 2 codes the direction of r = x - v_j over a dictionary U that all
atoms share, layer 3 what layer 2 left of it, and so on. Since the codes z of layer 1 sum to one,

    x  =  sum_j z_j (v_j + s_j gamma_j U + s'_j gamma'_j U' + ...)  +  what is left,

where s is the factor that leaves the shortest residual. (DESIGN 2.2 has the length of r in its place; but codes that
must sum to one may point far beyond a direction that no atom is near to, and then a layer would add to the error.)

The network's code is the list of all coefficients on the right: D_1 of layer 1, then D_1 D_2, D_1 D_3, ... of the
deeper ones, side by side. Unlike the augmented codes of `coding.depth` they see the descriptor at every layer, so they
do not collapse. `ResidualCoder` gives them in the form of any other code, so that everything after it stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn._validation import check_number, check_per_layer
from ddlcn.coding.locality import CodeBlock, LocalityCoder
from ddlcn.engines import get_engine

Array = NDArray[Any]


def check_layer_weights(weights: Any, depth: str, n_layers: int) -> tuple[float, ...] | None:
    """One factor per layer, or None."""
    if weights is None:
        return None
    if depth != "residual":
        raise ValueError('layer_weights are for depth="residual": augmented layers have the weights of DESIGN 2.1')
    if not isinstance(weights, tuple | list):
        raise ValueError(f"layer_weights must be a tuple with one number per layer; got {weights!r}")
    factors = tuple(
        check_number("layer_weights", weight) for weight in check_per_layer("layer_weights", weights, n_layers)
    )
    if not any(factors):
        raise ValueError(f"layer_weights {weights!r} leave no layer in the feature: give one a weight above zero")
    return factors


class _Residuals(NamedTuple):
    """What is left of n descriptors, once for each atom that they use."""

    directions: Array  # (uses, m), of length one
    lengths: Array  # (uses,)


class ResidualCoder:
    """The dictionaries of a residual network prepared for coding.

    Parameters
    ----------
    dictionaries : sequence of arrays (D_l, m), of one dtype
        Layer 1, then the directions of residuals.
    betas, n_neighbors : sequences
        One value per layer.
    tol : float
        Bound on the certificates.
    engine : str

    Attributes
    ----------
    n_atoms : int
        Columns of the codes: D_1 (1 + D_2 + D_3 + ...).
    layer_columns : list of slices
        The columns of each layer; atom j of layer 1 and atom u of layer l stand in column j * D_l + u of the slice.
    """

    def __init__(
        self,
        dictionaries: Sequence[Array],
        betas: Sequence[float],
        n_neighbors: Sequence[int | None],
        tol: float,
        engine: str = "auto",
    ) -> None:
        self._engine = get_engine(engine)
        self._dictionaries = dictionaries
        layers = zip(dictionaries, betas, n_neighbors, strict=True)
        self._coders = [LocalityCoder(atoms, beta, k, tol, engine) for atoms, beta, k in layers]
        layer1 = self._coders[0]
        self.n_dimensions, self.dtype = layer1.n_dimensions, layer1.dtype
        ends = np.cumsum([layer1.n_atoms] + [layer1.n_atoms * coder.n_atoms for coder in self._coders[1:]]).tolist()
        self.layer_columns = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
        self.n_atoms = ends[-1]
        self._width = layer1.width * (1 + sum(coder.width for coder in self._coders[1:]))

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), of the atoms' dtype, in the calling thread.

        The certificate of a descriptor is the worst of all layers'.
        """
        codes, residuals = self._start(X)
        n, width = codes.indices.shape
        indices, values = np.empty((n, self._width), np.int32), np.empty((n, self._width))
        indices[:, :width], values[:, :width] = codes.indices, codes.values
        out = CodeBlock(indices, values, codes.counts.copy(), codes.kkt)
        owner = np.repeat(np.arange(n), codes.counts)
        for layer in range(1, len(self._coders)):
            deep, scales = self._reduce(residuals, layer)
            self._engine.append_codes(
                codes.indices, codes.values, codes.counts, scales, deep.indices, deep.values, deep.counts,
                self._coders[layer].n_atoms, self.layer_columns[layer].start, out.indices, out.values, out.counts,
            )  # fmt: skip
            np.maximum.at(out.kkt, owner, deep.kkt)
        return out

    def reconstruct(self, X: Array) -> list[Array]:
        """Each layer's approximation (n, m) of the descriptors X: the right side above, up to that layer."""
        codes, residuals = self._start(X)
        owner = np.repeat(np.arange(len(X)), codes.counts)
        z = codes.values[np.arange(codes.values.shape[1]) < codes.counts[:, None]]  # (uses,)
        approximations = []
        for layer in range(len(self._coders)):
            if layer > 0:
                self._reduce(residuals, layer)
            left = np.zeros(X.shape)
            np.add.at(left, owner, (z * residuals.lengths)[:, None] * residuals.directions)
            approximations.append(X - left)
        return approximations

    def leave_over(self, X: Array) -> Array:
        """Directions (uses, m) of what all layers leave of the descriptors X (n, m), those of length zero left out."""
        _, residuals = self._start(X)
        for layer in range(1, len(self._coders)):
            self._reduce(residuals, layer)
        return residuals.directions[residuals.lengths > 0.0]

    def _start(self, X: Array) -> tuple[CodeBlock, _Residuals]:
        """Codes of layer 1, and what it leaves."""
        codes = self._coders[0].encode_block(X)
        n_uses = int(codes.counts.sum())
        residuals = _Residuals(np.empty((n_uses, X.shape[1]), self.dtype), np.empty(n_uses))
        self._engine.take_residuals(X, self._dictionaries[0], codes.indices, codes.counts, *residuals)
        return codes, residuals

    def _reduce(self, residuals: _Residuals, layer: int) -> tuple[CodeBlock, Array]:
        """Code the residuals by a deeper layer and take away what it has coded; its codes, and their scales (uses,)."""
        deep = self._coders[layer].encode_block(residuals.directions)
        scales = np.empty(len(residuals.lengths))
        self._engine.reduce_residuals(
            *residuals, self._dictionaries[layer], deep.indices, deep.values, deep.counts, scales
        )
        return deep, scales

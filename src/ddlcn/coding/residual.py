"""Residual depth: deeper layers code the residual of the layers before (docs/method.md 2.2).

For every atom j in the code of a descriptor x, layer 2 codes the direction of r = x - v_j over a dictionary U shared by
all atoms, layer 3 the residual of layer 2, and so on. Since the codes z of layer 1 sum to one,

    x  =  sum_j z_j (v_j + s_j gamma_j U + s'_j gamma'_j U' + ...)  +  residual,

where s is the factor that leaves the shortest residual. (The length of r instead would not work: codes that must sum
to one may overshoot a direction that is far from every atom, and then a layer would increase the error.)

The network's code concatenates all coefficients on the right: D_1 of layer 1, then D_1 D_2, D_1 D_3, ... of the deeper
layers. Unlike augmented codes (`coding.augmented`) they depend on the descriptor at every layer, so they do not
collapse. `ResidualCoder` returns them in the format of any other code, so that all later stages stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.coding.locality import CodeBlock, LocalityCoder, TracedCodes, borrow
from ddlcn.engines import get_engine
from ddlcn.utils.validation import check_number, check_per_layer

Array = NDArray[Any]


def check_layer_weights(weights: Any, depth: str, n_layers: int) -> tuple[float, ...] | None:
    """Return one factor per layer, or None."""
    if weights is None:
        return None
    if depth != "residual":
        raise ValueError(
            'layer_weights are for depth="residual": augmented layers have the weights of docs/method.md 2.1'
        )
    if not isinstance(weights, tuple | list):
        raise ValueError(f"layer_weights must be a tuple with one number per layer; got {weights!r}")
    factors = tuple(
        check_number("layer_weights", weight) for weight in check_per_layer("layer_weights", weights, n_layers)
    )
    if not any(factors):
        raise ValueError(f"layer_weights {weights!r} leave no layer in the feature: give one a weight above zero")
    return factors


class _Residuals(NamedTuple):
    """Residuals of n descriptors, one for each atom that they use; in memory that the thread's next block reuses."""

    directions: Array  # (uses, m), of unit norm
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
    ) -> None:
        self._engine = get_engine()
        self._dictionaries = dictionaries
        layers = zip(dictionaries, betas, n_neighbors, strict=True)
        self._coders = [LocalityCoder(atoms, beta, k, tol) for atoms, beta, k in layers]
        layer1 = self._coders[0]
        self.n_dimensions, self.dtype = layer1.n_dimensions, layer1.dtype
        ends = np.cumsum([layer1.n_atoms] + [layer1.n_atoms * coder.n_atoms for coder in self._coders[1:]]).tolist()
        self.layer_columns = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
        self.n_atoms = ends[-1]
        self._width = layer1.width * (1 + sum(coder.width for coder in self._coders[1:]))
        # Products of layer 2 with residuals come from those with descriptors and atoms: a fifth of the work with k = 5.
        self._projection = self._coders[1].projection if len(self._coders) > 1 else None
        if self._projection is not None:
            self._atom_products = np.asarray(dictionaries[0] @ self._projection.T, np.float32)  # (D_1, padded)
            self._atom_norms = np.linalg.norm(dictionaries[0].astype(np.float64), axis=1)

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), of the atoms' dtype, in the calling thread.

        The certificate of a descriptor is the largest over all layers.
        """
        return self.trace_block(X).codes

    def trace_block(self, X: Array) -> TracedCodes:
        """As `encode_block`, with the codes of every layer: what the backward pass starts from."""
        codes, residuals = self._start(X)
        n, width = codes.indices.shape
        indices, values = np.empty((n, self._width), np.int32), np.empty((n, self._width))
        indices[:, :width], values[:, :width] = codes.indices, codes.values
        traced = TracedCodes(CodeBlock(indices, values, codes.counts.copy(), codes.kkt), codes, [], [])
        for layer in range(1, len(self._coders)):
            deep, scales = self._reduce(residuals, layer, (X, codes), layer == len(self._coders) - 1)
            self._engine.append_codes(
                codes.indices, codes.values, codes.counts, scales, *deep,
                self._coders[layer].n_atoms, self.layer_columns[layer].start, *traced.codes,
            )  # fmt: skip
            traced.deeper.append(deep)
            traced.scales.append(scales)
        return traced

    def reconstruct(self, X: Array) -> list[Array]:
        """Each layer's approximation (n, m) of the descriptors X: the sum above, up to that layer."""
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

    def compute_directions(self, X: Array) -> Array:
        """Directions (uses, m) of the nonzero residuals that all layers leave of descriptors X (n, m)."""
        _, residuals = self._start(X)
        for layer in range(1, len(self._coders)):
            self._reduce(residuals, layer)
        return residuals.directions[residuals.lengths > 0.0]

    def _start(self, X: Array) -> tuple[CodeBlock, _Residuals]:
        """Return the codes of layer 1 and its residuals."""
        codes = self._coders[0].encode_block(X)
        n_uses = int(codes.counts.sum())
        directions = borrow(f"directions{self.dtype}", (n_uses, X.shape[1]), self.dtype)
        residuals = _Residuals(directions, borrow("lengths", (n_uses,), np.float64))
        self._engine.compute_residuals(
            X, self._dictionaries[0], codes.indices, codes.counts, residuals.directions, residuals.lengths
        )
        return codes, residuals

    def _reduce(
        self, residuals: _Residuals, layer: int, origin: tuple[Array, CodeBlock] | None = None, is_last: bool = False
    ) -> tuple[CodeBlock, Array]:
        """Code the residuals by a deeper layer and subtract its approximation; returns its codes and scales (uses,).

        `origin`: the descriptors and their codes of layer 1, whose residuals these are until layer 2 has coded them.
        `is_last`: the residuals themselves are not needed any more, and stay as they are.
        """
        if layer == 1 and origin is not None and self._projection is not None:
            deep = self._project(residuals, *origin)
        else:
            deep = self._coders[layer].encode_block(residuals.directions)
        scales = np.empty(len(residuals.lengths))
        self._engine.reduce_residuals(
            residuals.directions, residuals.lengths, self._dictionaries[layer],
            deep.indices, deep.values, deep.counts, is_last, scales,
        )  # fmt: skip
        return deep, scales

    def _project(self, residuals: _Residuals, X: Array, codes: CodeBlock) -> CodeBlock:
        """Code the residuals of layer 1 by layer 2."""
        assert self._projection is not None
        P = X.astype(np.float32, copy=False) @ self._projection.T  # (n, padded)
        H = borrow("projected", (len(residuals.lengths), P.shape[1]), np.float32)
        looseness = borrow("looseness", (len(H),), np.float64)
        self._engine.project_residuals(
            X, P, self._atom_products, codes.indices, codes.counts, self._atom_norms, residuals.lengths,
            H, looseness,
        )  # fmt: skip
        return self._coders[1].encode_projected(residuals.directions, H, looseness)

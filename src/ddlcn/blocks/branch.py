"""One kind of descriptor: what was learned on it, and the blocks of the feature that come from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks.kinds import Batch, Block, CodedBlock, FirstOrderBlock, GlobalBlock
from ddlcn.coding import LocalityCoder, encode_layers, path_weights, reconstruct
from ddlcn.coding.first_order import FirstOrderModel, FirstOrderPooling
from ddlcn.coding.residual import ResidualCoder
from ddlcn.configuration import BranchConfig
from ddlcn.descriptors import Descriptors, describe
from ddlcn.images import NamedImage
from ddlcn.pooling import assign_cells

Array = NDArray[Any]

# Bound on the coder's certificate; the active set reaches far below, this is what would be reported as a failure.
TOL = 1e-6


@dataclass(eq=False)
class Branch:
    """One kind of descriptor and what was learned on it.

    Attributes
    ----------
    config : BranchConfig
    descriptors : object with transform(images) -> list of Descriptors
        Fitted.
    dictionaries : list of ndarrays (atoms, m), one per layer
    first_order : FirstOrderModel or None
    atom_labels : ndarray (atoms of layer 1,), or (0,) if all classes share them
        The class from whose images each atom was learned.
    global_weight : float
        How much of the feature describes the image as a whole, where the descriptors do.
    """

    config: BranchConfig
    descriptors: Any
    dictionaries: list[Array]
    first_order: FirstOrderModel | None
    atom_labels: Array
    global_weight: float
    _blocks: list[tuple[float, Block]] = field(default_factory=list, repr=False)

    @property
    def n_atoms(self) -> int:
        """Of layer 1, and of the shared first-order dictionary."""
        return len(self.dictionaries[0]) + (0 if self.first_order is None else len(self.first_order.atoms))

    @property
    def blocks(self) -> list[tuple[float, Block]]:
        """Blocks and their weights, which sum to one; prepared on first use."""
        if not self._blocks:
            self._blocks = self._prepare()
        return self._blocks

    @property
    def coded(self) -> CodedBlock:
        """The block of the layers' codes."""
        block = self.blocks[0][1]
        assert isinstance(block, CodedBlock)
        return block

    def _prepare(self) -> list[tuple[float, Block]]:
        config = self.config
        blocks: list[tuple[float, Block]] = [(1.0, _make_coded_block(config, self.dictionaries))]
        if self.first_order is not None:
            pooling = FirstOrderPooling(self.first_order, config.beta[0], config.n_neighbors[0], TOL)
            first_order = FirstOrderBlock(pooling, config.pyramid, len(self.dictionaries[0]))
            blocks = [(0.5, blocks[0][1]), (0.5, first_order)]
        n_responses = int(getattr(self.descriptors, "n_responses_", 0))
        if n_responses:
            blocks = [(weight * (1 - self.global_weight), block) for weight, block in blocks]
            blocks.append((self.global_weight, GlobalBlock(n_responses)))
        return blocks

    def collect(self, described: Sequence[Descriptors]) -> Batch:
        """The descriptors of a few images, as the blocks take them."""
        return collect(described, self.coded.coder, self.config.pyramid)

    def reconstruct(self, item: NamedImage) -> list[Array]:
        """Each layer's approximation (patches, m) of the descriptors of one image."""
        X = self.collect([describe(self.descriptors, item)]).X
        if isinstance(self.coded.coder, ResidualCoder):
            return list(self.coded.coder.reconstruct(X))
        deep_codes = encode_layers(self.dictionaries, self.config.beta, self.config.n_neighbors, TOL, n_jobs=1)
        return reconstruct(self.coded.encode_rows(X), self.dictionaries, deep_codes)

    def __getstate__(self) -> dict[str, Any]:
        # Blocks are prepared again from the dictionaries: they hold tables that need not travel.
        return {**self.__dict__, "_blocks": []}


def _make_coded_block(config: BranchConfig, dictionaries: Sequence[Array]) -> CodedBlock:
    """Layers as in the paper (`coding.augmented`), or coding what is left over (`coding.residual`)."""
    size = (config.pyramid, config.pool_power)
    if config.make_block is not None:
        block: CodedBlock = config.make_block(dictionaries, config)
        return block
    if config.depth == "residual":
        coder = ResidualCoder(dictionaries, config.beta, config.n_neighbors, TOL)
        plus, atoms = np.ones(coder.n_atoms), np.empty(coder.n_atoms, np.intp)
        for l, columns in enumerate(coder.layer_columns):
            plus[columns] = 1.0 if config.layer_weights is None else config.layer_weights[l]
            n_each = 1 if l == 0 else len(dictionaries[l])
            atoms[columns] = np.arange(columns.stop - columns.start) // n_each
        return CodedBlock(coder, plus, None, *size, atoms)
    return make_augmented_block(dictionaries, config.beta, config.n_neighbors, *size)


def make_augmented_block(
    dictionaries: Sequence[Array],
    beta: Sequence[float],
    n_neighbors: Sequence[int | None],
    pyramid: tuple[int, ...],
    pool_power: float = 1.0,
    coder: Any = None,
) -> CodedBlock:
    """Layers as in the paper: the codes of the first, weighted by the paths through the others.

    `coder` replaces the exact one in the first layer.
    """
    coder = LocalityCoder(dictionaries[0], beta[0], n_neighbors[0], TOL) if coder is None else coder
    deep_codes = encode_layers(dictionaries, beta, n_neighbors, TOL, n_jobs=1)
    P, N = path_weights(deep_codes, len(dictionaries[0]), pool_power)
    return CodedBlock(coder, np.sqrt(P), np.sqrt(N), pyramid, pool_power)


class SingleBranch:
    """Descriptors and one block: what `Encoding` needs of a branch, for coders of other methods."""

    def __init__(self, descriptors: Any, block: CodedBlock, pyramid: tuple[int, ...]) -> None:
        self.descriptors, self._pyramid = descriptors, pyramid
        self.blocks: list[tuple[float, Block]] = [(1.0, block)]
        self._coder = block.coder

    def collect(self, described: Sequence[Descriptors]) -> Batch:
        """As of `Branch`."""
        return collect(described, self._coder, self._pyramid)


def collect(described: Sequence[Descriptors], coder: Any, pyramid: tuple[int, ...]) -> Batch:
    """The descriptors of a few images, of the coder's dtype, and the cells that they lie in."""
    for d in described:
        if d.values.shape[1] != coder.n_dimensions:
            raise ValueError(
                f"features gives descriptors of width {d.values.shape[1]} but the dictionary was learned on width "
                f"{coder.n_dimensions}: use the features that the model was fitted with"
            )
    X = np.concatenate([np.ascontiguousarray(d.values, coder.dtype) for d in described])
    cells = np.concatenate([assign_cells(d.xy, d.image_shape, pyramid) for d in described])
    return Batch(described, X, cells, np.cumsum([0] + [len(d) for d in described]))


def find_atom(branches: Sequence[Branch], atom: int) -> tuple[Branch, Array]:
    """The branch of an atom that `Encoding.list_atoms` numbers, and the atom itself (m,)."""
    for branch in branches:
        if atom < branch.n_atoms:
            n_layer1 = len(branch.dictionaries[0])
            if atom < n_layer1:
                return branch, branch.dictionaries[0][atom]
            assert branch.first_order is not None  # or there were no more atoms
            return branch, branch.first_order.atoms[atom - n_layer1]
        atom -= branch.n_atoms
    raise IndexError(f"there is no atom {atom}")

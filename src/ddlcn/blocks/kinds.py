"""The kinds of blocks: each makes some columns of the feature from the descriptors of a batch of images.

Rows of a block have unit norm; `blocks.encoding` weights them and puts them side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.first_order import FirstOrderPooling
from ddlcn.coding.locality import BLOCK, CodeBlock, join_blocks
from ddlcn.descriptors import Descriptors
from ddlcn.images import NamedImage
from ddlcn.pooling import attribute, count_cells, pool
from ddlcn.utils.sparse_rows import make_csr

Array = NDArray[Any]

# Keeps a division by zero from being one.
TINY = 1e-30


class Batch(NamedTuple):
    """The descriptors of a few images, one image after the other."""

    described: Sequence[Descriptors]
    X: Array  # (n, m)
    cells: NDArray[np.int32]  # (n, levels): the cell of every descriptor on every level of the pyramid
    starts: NDArray[np.int64]  # (images + 1,): where each image's descriptors begin


class Block(Protocol):
    """Some columns of the feature."""

    n_columns: int

    def pool(self, batch: Batch) -> Any:
        """Features of a batch: csr_array (images, n_columns), rows of unit norm."""

    def attribute(self, batch: Batch, descriptors: Any, item: NamedImage) -> Any:
        """The feature of the single image of a batch, split among its patches: csr_array (patches, n_columns)."""

    def list_atoms(self) -> NDArray[np.intp]:
        """The atom behind every column (n_columns,); -1 where there is none."""


class CodedBlock:
    """Codes of the descriptors, max pooled in the cells of a pyramid.

    Parameters
    ----------
    coder : object with encode_block(X) -> CodeBlock, and n_atoms, n_dimensions, dtype
    plus, minus : ndarrays (n_atoms,)
        Weights of the largest code and of the largest negative code of an atom; see `ddlcn.pooling`. `minus` may be
        None: then only the largest codes are features.
    pyramid : tuple of int
    pool_power : float
    atoms_of_codes : ndarray (n_atoms,), optional
        The atom of layer 1 behind every column of the codes; None: they are the atoms.
    """

    def __init__(
        self,
        coder: Any,
        plus: Array,
        minus: Array | None,
        pyramid: tuple[int, ...],
        pool_power: float = 1.0,
        atoms_of_codes: Array | None = None,
    ) -> None:
        self.coder = coder
        self.plus, self.minus = plus, minus
        self.pyramid, self.pool_power = pyramid, pool_power
        self._n_repeats = (1 if minus is None else 2) * count_cells(pyramid)
        self._atoms_of_codes = np.arange(coder.n_atoms) if atoms_of_codes is None else atoms_of_codes
        self.n_columns = self._n_repeats * coder.n_atoms

    def pool(self, batch: Batch) -> Any:
        codes = self.encode(batch.X)
        return pool(codes, batch.cells, batch.starts, self.pyramid, self.plus, self.minus, self.pool_power).features

    def attribute(self, batch: Batch, descriptors: Any, item: NamedImage) -> Any:
        codes = self.encode(batch.X)
        return attribute(codes, batch.cells, self.pyramid, self.plus, self.minus, self.pool_power)

    def list_atoms(self) -> NDArray[np.intp]:
        return np.tile(self._atoms_of_codes, self._n_repeats)

    def encode(self, X: Array) -> CodeBlock:
        """Codes of many descriptors (n, m), in the calling thread."""
        return join_blocks([self.coder.encode_block(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)])

    def encode_rows(self, X: Array) -> Any:
        """The same codes as a csr_array (n, atoms)."""
        codes = self.encode(X)
        used = np.arange(codes.indices.shape[1]) < codes.counts[:, None]
        starts = np.concatenate([[0], np.cumsum(codes.counts)])
        return make_csr(codes.values[used], codes.indices[used], starts, (len(X), self.coder.n_atoms))


class FirstOrderBlock:
    """To which side of the atoms of a shared dictionary the descriptors of a cell lie; see `coding.first_order`."""

    def __init__(self, pooling: FirstOrderPooling, pyramid: tuple[int, ...], first_atom: int) -> None:
        self.pooling, self.n_cells, self._first_atom = pooling, count_cells(pyramid), first_atom
        self.n_columns = self.n_cells * pooling.n_columns_per_cell

    def pool(self, batch: Batch) -> Any:
        return self.pooling.pool(batch.X, batch.cells, batch.starts, self.n_cells)

    def attribute(self, batch: Batch, descriptors: Any, item: NamedImage) -> Any:
        return self.pooling.attribute(batch.X, batch.cells, self.n_cells)

    def list_atoms(self) -> NDArray[np.intp]:
        n_atoms, n_directions = self.pooling.shape
        return np.tile(self._first_atom + np.repeat(np.arange(n_atoms), n_directions), self.n_cells)


class GlobalBlock:
    """The square roots of what describes the image as a whole (`Descriptors.whole`)."""

    def __init__(self, n_responses: int) -> None:
        self.n_columns = n_responses

    def pool(self, batch: Batch) -> Any:
        roots = np.sqrt(np.stack([np.asarray(d.whole) for d in batch.described]))  # (images, s)
        return sparse.csr_array(roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), TINY))

    def attribute(self, batch: Batch, descriptors: Any, item: NamedImage) -> Any:
        """In proportion to the responses at the patches."""
        responses = descriptors.respond(item.image, name=item.name).astype(np.float64)  # (patches, s)
        totals = responses.sum(axis=0)
        roots = np.sqrt(totals)
        shares = responses * (roots / np.maximum(totals, TINY) / max(float(np.linalg.norm(roots)), TINY))
        return sparse.csr_array(shares.astype(np.float32))

    def list_atoms(self) -> NDArray[np.intp]:
        return np.full(self.n_columns, -1)

"""Sum pooling of codes. In: descriptors X (n, m). Out: soft assignments to atoms, then histograms (or square roots).

A descriptor x is shared among the atoms d_j near it (van Gemert et al. 2008, "codeword uncertainty"),

    z_j = K(x, d_j) / sum_l K(x, d_l),    K(x, d) = exp(-||x - d||^2 / 2 sigma^2),

these are summed in the cells of a spatial pyramid (Lazebnik et al. 2006), and an image's histogram is scaled to sum to
one. With a single neighbour it is the bag of words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.blocks import Batch, CodedBlock
from ddlcn.coding import CodeBlock
from ddlcn.pooling import count_cells
from ddlcn.utils.sparse_rows import make_csr

Array = NDArray[Any]


class SoftAssignment:
    """Soft assignment of a descriptor to its nearest atoms, by a Gaussian kernel of the distances.

    Parameters
    ----------
    atoms : ndarray (atoms, m)
    sigma : float
        Width of the kernel; not used for a single neighbour.
    n_neighbors : int
        Number of atoms; 1 is the hard assignment of a bag of words.
    """

    def __init__(self, atoms: Array, sigma: float, n_neighbors: int) -> None:
        self._atoms, self._sigma = atoms, sigma
        self._half_norms = 0.5 * np.einsum("ij,ij->i", atoms, atoms)
        self.n_atoms, self.n_dimensions = atoms.shape
        self.dtype = atoms.dtype
        self.width = min(n_neighbors, self.n_atoms)

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), in the calling thread."""
        n, k = len(X), self.width
        keys = self._half_norms - X @ self._atoms.T  # (n, atoms): 1/2 ||x - d||^2, up to a number per row
        nearest = np.sort(np.argpartition(keys, k - 1, axis=1)[:, :k], axis=1)  # (n, k)
        keys = np.take_along_axis(keys, nearest, axis=1).astype(np.float64)
        z = np.exp((keys.min(axis=1, keepdims=True) - keys) / self._sigma**2)
        z /= z.sum(axis=1, keepdims=True)
        return CodeBlock(nearest.astype(np.int32), z, np.full(n, k, np.int32), np.zeros(n))


class Magnitudes:
    """A coder with absolute values of codes: ScSPM pools max |z|."""

    def __init__(self, coder: Any) -> None:
        self._coder = coder
        self.n_atoms, self.n_dimensions, self.dtype = coder.n_atoms, coder.n_dimensions, coder.dtype

    def encode_block(self, X: Array) -> CodeBlock:
        codes: CodeBlock = self._coder.encode_block(X)
        return codes._replace(values=np.abs(codes.values))


def weigh_levels(pyramid: tuple[int, ...]) -> Array:
    """The levels' weights (levels,) of the pyramid match kernel (Lazebnik et al. 2006): 1/4, 1/4, 1/2 for three."""
    weights: Array = 0.5 ** np.arange(len(pyramid), 0, -1.0)
    weights[0] *= 2.0 if len(pyramid) > 1 else 1.0 / weights[0]
    return weights


class Histograms(CodedBlock):
    """Code, and add up in every cell: codes must not be negative, rows sum to one (roots: they get unit norm).

    Parameters
    ----------
    coder, pyramid
        See `CodedBlock`.
    root : bool
        Whether to take square roots.
    """

    def __init__(self, coder: Any, pyramid: tuple[int, ...], root: bool = True) -> None:
        super().__init__(coder, np.ones(coder.n_atoms), None, pyramid)
        self._root = root
        self._level_weights = weigh_levels(pyramid)

    def pool(self, batch: Batch) -> Any:
        """Histograms, or their square roots: csr_array (images, cells * atoms), columns ascending in every row."""
        codes, cells, starts = self.encode(batch.X), batch.cells, batch.starts
        n, width = codes.indices.shape
        n_images, n_cells, n_levels = len(starts) - 1, count_cells(self.pyramid), cells.shape[1]
        Z = make_csr(codes.values.ravel(), codes.indices.ravel(), width * np.arange(n + 1), (n, len(self.plus)))
        image = np.repeat(np.arange(n_images), np.diff(starts))  # (n,)
        where = (image[:, None] * n_cells + cells).ravel()
        patch = np.repeat(np.arange(n), n_levels)
        weights = np.tile(self._level_weights, n)
        members = sparse.csr_array((weights, (where, patch)), shape=(n_images * n_cells, n))
        sums = (members @ Z).reshape(n_images, -1).tocsr()  # (images, cells * atoms); rows sum to the descriptors
        sums.sort_indices()
        shares = sums.data / np.repeat(np.diff(starts), np.diff(sums.indptr))
        # Differs from the paper: the linear SVM on square roots is an SVM with Hellinger's kernel, sum_j sqrt(f_j g_j),
        # instead of histogram intersection, sum_j min(f_j, g_j); training and prediction then take linear time.
        values = np.sqrt(shares) if self._root else shares
        return make_csr(values.astype(np.float32), sums.indices.astype(np.int32), sums.indptr, sums.shape)

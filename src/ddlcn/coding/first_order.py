"""First order: on which side of its atoms a cell's descriptors lie (docs/method.md, "First order").

One small dictionary is shared by all classes; for its atom j and a cell of the pyramid

    t_j  =  sum_i z_ij (y_i - mu_j) / sigma_j  /  (sqrt(pi_j) sum_ij z_ij),

where y are the descriptors' first principal components, z >= 0 their codes (negative ones left out), and mu, sigma, pi
the mean, the standard deviation and the share of the descriptors that use atom j, learned on training images. The
signed square roots of all t, scaled to unit norm, are the feature.

`coding.residual` keeps the strongest response in each direction, this the average: they are complementary, and together
recognise better than either. Averages around visual words are the idea of super-vector coding (Zhou et al. 2010) and of
Fisher vectors (Perronnin et al. 2010); here exact, sparse codes replace the probabilities under a mixture of Gaussians:
better on our folds (docs/depth.md), and each descriptor uses a few atoms instead of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.locality import BLOCK, LocalityCoder, borrow
from ddlcn.engines import get_engine
from ddlcn.utils.sparse_rows import make_csr

Array = NDArray[Any]


@dataclass(frozen=True)
class FirstOrderModel:
    """The learned parameters; see `dictionaries.learn_first_order`.

    Attributes
    ----------
    atoms : ndarray (D, m)
    basis : ndarray (m, directions); centre : ndarray (m,)
        y = (x - centre) basis.
    means, scales : ndarrays (D, directions)
        mu and sigma.
    shares : ndarray (D,)
        pi; they sum to one.
    floor : float
        Descriptors are divided by their norm, or by this if it is larger: flat patches keep a small norm.
    """

    atoms: Array
    basis: Array
    centre: Array
    means: Array
    scales: Array
    shares: Array
    floor: float


def to_unit_norm(X: Array, floor: float, out: Array | None = None) -> Array:
    """Scale rows to unit norm; those with a norm below `floor` are divided by `floor`."""
    unit = np.empty_like(X, order="C") if out is None else out
    get_engine().scale_to_unit_norm(X, floor, unit)
    return unit


class FirstOrderPooling:
    """A learned model prepared for pooling.

    Parameters
    ----------
    model : FirstOrderModel
    beta, n_neighbors, tol
        Settings of the coding.

    Attributes
    ----------
    coder : LocalityCoder
    inverse_scales : ndarray (D, directions), float32
        1 / (sigma sqrt(pi)).
    shape : (D, directions)
    n_columns_per_cell : int
        D * directions.
    """

    def __init__(self, model: FirstOrderModel, beta: float, n_neighbors: int | None, tol: float):
        self.model = model
        self.coder = LocalityCoder(model.atoms, beta, n_neighbors, tol)
        self._engine = get_engine()
        self.shape = model.means.shape
        self.n_columns_per_cell = model.means.size
        self._offset = model.centre @ model.basis  # (directions,)
        self.inverse_scales = (1.0 / (model.scales * np.sqrt(model.shares)[:, None])).astype(np.float32)

    def pool(self, X: Array, cells: NDArray[np.int32], starts: NDArray[np.int64], n_cells: int) -> Any:
        """Features of a batch of images.

        Parameters
        ----------
        X : ndarray (n, m), of the atoms' dtype
            Descriptors of all images, one image after the other.
        cells : ndarray (n, levels), int32
            The cell of every descriptor on every level of the pyramid.
        starts : ndarray (images + 1,)
            Where each image's descriptors begin.
        n_cells : int
            Of all levels.

        Returns
        -------
        features : csr_array (images, n_cells * D * directions), float32
            Rows of unit norm (zero where no descriptor has a positive code).
        """
        model, n_images = self.model, len(starts) - 1
        sums = np.zeros((n_images, n_cells, *self.shape), np.float32)
        weights = np.zeros(sums.shape[:3], np.float32)
        images = np.repeat(np.arange(n_images), np.diff(starts))  # (n,)
        for begin in range(0, len(X), BLOCK):
            block = slice(begin, begin + BLOCK)
            unit, Y = self.project(X[block], borrow(f"unit{X.dtype}", X[block].shape, X.dtype))
            codes = self.coder.encode_block(unit)
            self._engine.sum_first_order(
                np.asarray(Y, np.float32),
                codes.indices,
                codes.values,
                codes.counts,
                cells[block],
                images[block],
                sums,
                weights,
            )
        capacity = int(np.count_nonzero(weights)) * self.shape[1]
        columns, values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        ends = np.zeros(n_images + 1, np.int64)
        means = np.asarray(model.means, np.float32)
        self._engine.finish_first_order(sums, weights, means, self.inverse_scales, columns, values, ends[1:])
        return make_csr(values, columns, ends, (n_images, n_cells * self.n_columns_per_cell))

    def project(self, X: Array, out: Array | None = None) -> tuple[Array, Array]:
        """Descriptors (n, m) of unit norm (in `out`, if given), and their principal components y (n, directions)."""
        unit = to_unit_norm(X, self.model.floor, out)
        return unit, unit @ self.model.basis - self._offset

    def attribute(self, X: Array, cells: NDArray[np.int32], n_cells: int) -> Any:
        """Split the feature of one image among its descriptors.

        An entry of the feature is the root of a sum over descriptors, so it is divided among the terms with its sign,
        in proportion to their size.

        Parameters are those of `pool`, of one image with n descriptors.

        Returns
        -------
        parts : csr_array (n, n_cells * D * directions), float32
            The sum of the rows is the feature.
        """
        model = self.model
        feature = self.pool(X, cells, np.array([0, len(X)]), n_cells).toarray()[0]
        unit, Y = self.project(X)
        blocks = [self.coder.encode_block(unit[begin : begin + BLOCK]) for begin in range(0, len(X), BLOCK)]
        indices, values, counts = (np.concatenate([block[part] for block in blocks]) for part in range(3))
        patch, slot = np.nonzero((np.arange(indices.shape[1]) < counts[:, None]) & (values > 0.0))
        atom, z = indices[patch, slot], values[patch, slot]
        deviations = z[:, None] * (Y[patch] - model.means[atom])  # (uses, directions)
        n_directions = deviations.shape[1]
        parts = sparse.csr_array((len(X), len(feature)), dtype=np.float32)
        for level in range(cells.shape[1]):
            first = (cells[patch, level].astype(np.int64) * len(model.atoms) + atom) * n_directions
            columns = first[:, None] + np.arange(n_directions)
            along = np.maximum(deviations * np.sign(feature[columns]), 0.0)
            sums = np.bincount(columns.ravel(), along.ravel(), minlength=len(feature))
            shares = along / np.where(sums > 0.0, sums, 1.0)[columns] * feature[columns]
            rows = np.repeat(patch, n_directions)
            parts = parts + sparse.csr_array((shares.ravel(), (rows, columns.ravel())), shape=parts.shape)
        return parts.astype(np.float32)

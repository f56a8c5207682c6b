"""Tangents: to which side of its atoms a cell's descriptors lie, to first order.

A small dictionary that all classes share; for its atom j and a cell of the pyramid

    t_j  =  sum_i z_ij (y_i - mu_j) / sigma_j  /  (sqrt(pi_j) sum_ij z_ij),

where y are the descriptors in their few directions of largest variance, z >= 0 their codes (negative ones left out),
and mu, sigma, pi the mean, the deviation and the share of the descriptors that use atom j, learned on training images.
The square roots of all t, signs kept, are the feature, scaled to length one.

Where `coding.residual` keeps the strongest response in each direction, this keeps the average: the two know different
things, and together they recognise better than either. Averages around the words of a vocabulary are the idea of
super-vector coding (Zhou et al. 2010) and of Fisher vectors (Perronnin et al. 2010); here the exact, sparse codes stand
where those have probabilities under a mixture of Gaussians: better on our folds (docs/depth.md), and each descriptor
touches a few atoms instead of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.locality import BLOCK, LocalityCoder
from ddlcn.engines import get_engine

Array = NDArray[Any]


@dataclass(frozen=True)
class TangentModel:
    """What is learned; see `dictionaries.learn_tangents`.

    Attributes
    ----------
    atoms : ndarray (D, m)
    basis : ndarray (m, directions); centre : ndarray (m,)
        y = (x - centre) basis.
    means, scales : ndarrays (D, directions)
        mu and sigma.
    shares : ndarray (D,)
        pi, which sum to one.
    floor : float
        Descriptors are divided by their length, or by this if they are shorter: flat patches stay short.
    """

    atoms: Array
    basis: Array
    centre: Array
    means: Array
    scales: Array
    shares: Array
    floor: float


def to_length_one(X: Array, floor: float) -> Array:
    """Rows of length one; those shorter than `floor` keep their proportion to it."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    unit: Array = (X / np.maximum(lengths, floor)[:, None]).astype(X.dtype)
    return unit


class Tangents:
    """A learned model prepared for pooling.

    Parameters
    ----------
    model : TangentModel
    beta, n_neighbors, tol
        How its atoms code.
    engine : str

    Attributes
    ----------
    shape : (D, directions)
    n_columns_per_cell : int
        D * directions.
    """

    def __init__(self, model: TangentModel, beta: float, n_neighbors: int | None, tol: float, engine: str = "auto"):
        self._model = model
        self._coder = LocalityCoder(model.atoms, beta, n_neighbors, tol, engine)
        self._engine = get_engine(engine)
        self.shape = model.means.shape
        self.n_columns_per_cell = model.means.size

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
            Rows of length one (of zero where no descriptor has a code above zero).
        """
        model = self._model
        unit = to_length_one(X, model.floor)
        Y = np.ascontiguousarray((unit - model.centre) @ model.basis, np.float32)
        sums = np.zeros((len(starts) - 1, n_cells, *model.means.shape), np.float32)
        weights = np.zeros(sums.shape[:3], np.float32)
        for begin in range(0, len(X), BLOCK):
            codes = self._coder.encode_block(unit[begin : begin + BLOCK])
            images = np.searchsorted(starts, np.arange(begin, min(begin + BLOCK, len(X))), side="right") - 1
            block = slice(begin, begin + BLOCK)
            self._engine.sum_tangents(
                Y[block], codes.indices, codes.values, codes.counts, cells[block], images, sums, weights
            )
        total = weights.sum(axis=2, keepdims=True)[..., None]  # (images, cells, 1, 1)
        tangents = (sums - weights[..., None] * model.means) / (model.scales * np.sqrt(model.shares)[:, None])
        tangents = tangents / np.where(total > 0.0, total, 1.0)
        features = (np.sign(tangents) * np.sqrt(np.abs(tangents))).reshape(len(starts) - 1, -1)
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        return sparse.csr_array((features / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32))

    def attribute(self, X: Array, cells: NDArray[np.int32], n_cells: int) -> Any:
        """Split the feature of one image among its descriptors.

        A number of the feature is the root of a sum over descriptors, so it belongs to those that pull to its side,
        each according to its part of their sum.

        Parameters are those of `pool`, of one image with n descriptors.

        Returns
        -------
        parts : csr_array (n, n_cells * D * directions), float32
            The sum of the rows is the feature.
        """
        model = self._model
        feature = self.pool(X, cells, np.array([0, len(X)]), n_cells).toarray()[0]
        unit = to_length_one(X, model.floor)
        Y = (unit - model.centre) @ model.basis
        blocks = [self._coder.encode_block(unit[begin : begin + BLOCK]) for begin in range(0, len(X), BLOCK)]
        indices, values, counts = (np.concatenate([block[part] for block in blocks]) for part in range(3))
        patch, slot = np.nonzero((np.arange(indices.shape[1]) < counts[:, None]) & (values > 0.0))
        atom, z = indices[patch, slot], values[patch, slot]
        pulls = z[:, None] * (Y[patch] - model.means[atom])  # (uses, directions)
        n_directions = pulls.shape[1]
        parts = sparse.csr_array((len(X), len(feature)), dtype=np.float32)
        for level in range(cells.shape[1]):
            first = (cells[patch, level].astype(np.int64) * len(model.atoms) + atom) * n_directions
            columns = first[:, None] + np.arange(n_directions)
            along = np.maximum(pulls * np.sign(feature[columns]), 0.0)
            sums = np.bincount(columns.ravel(), along.ravel(), minlength=len(feature))
            shares = along / np.where(sums > 0.0, sums, 1.0)[columns] * feature[columns]
            rows = np.repeat(patch, n_directions)
            parts = parts + sparse.csr_array((shares.ravel(), (rows, columns.ravel())), shape=parts.shape)
        return parts.astype(np.float32)

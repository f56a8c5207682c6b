"""Depth in the paper's form: augmented codes, and why they collapse (docs/method.md, "Augmentation", and 2.1).

Every atom of layer l - 1 has a code gamma over layer l. A descriptor's code entry z_j becomes the block
[z_j, z_j * gamma_j1, ..., z_j * gamma_jD2], and so on downwards: z_j times a fixed row of path coefficients. Max
pooling commutes with a fixed factor, so a whole network's feature is two pooled numbers per atom, weighted by sqrt(P)
and sqrt(N): `path_weights`. `augment` builds the explicit codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.locality import LocalityCoder, _encode

Array = NDArray[Any]


def encode_layers(
    dictionaries: Sequence[Array],
    betas: Sequence[float],
    n_neighbors: Sequence[int | None],
    tol: float,
    n_jobs: int | None,
) -> list[Any]:
    """Codes of every layer's atoms over the next layer's.

    Parameters
    ----------
    dictionaries : sequence of arrays (D_l, m), layers 1 to n
    betas, n_neighbors : sequences, one value per layer
    tol : float

    Returns
    -------
    deep_codes : list of n - 1 csr_arrays (D_{l-1}, D_l)
    """
    layers = zip(dictionaries[:-1], dictionaries[1:], betas[1:], n_neighbors[1:], strict=True)
    return [
        _encode(below, LocalityCoder(atoms, beta, k, tol), tol, len(atoms), n_jobs).codes
        for below, atoms, beta, k in layers
    ]


def path_weights(deep_codes: Sequence[Any], n_atoms: int, power: float = 1.0) -> tuple[Array, Array]:
    """P and N of docs/method.md 2.1, from the last layer upward.

    Parameters
    ----------
    deep_codes : sequence of sparse or dense (D_{l-1}, D_l)
        Codes of the atoms of layers 1 to n - 1; empty for one layer.
    n_atoms : int
        D_1.
    power : float
        If pooled features are raised to a power, so are the path coefficients.

    Returns
    -------
    P, N : ndarrays (D_1,)
        Sums of c^(2 power) over the positive, and of |c|^(2 power) over the negative path coefficients of each atom.
    """
    last = deep_codes[-1].shape[1] if deep_codes else n_atoms
    P, N = np.ones(last), np.zeros(last)
    for gamma in reversed(deep_codes):
        positive, negative = _split(gamma, 2.0 * power)
        P, N = 1.0 + positive @ P + negative @ N, positive @ N + negative @ P
    return P, N


def path_coefficients(deep_codes: Sequence[Any], n_atoms: int) -> Array:
    """The factors of one code entry's block: dense (D_1, 1 + D_2 (1 + D_3 (1 + ...))).

    Row j is [1, gamma_j1 * (row of atom 1 of layer 2), gamma_j2 * (row of atom 2), ...].
    """
    rows = np.ones((deep_codes[-1].shape[1] if deep_codes else n_atoms, 1))
    for gamma in reversed(deep_codes):
        dense = gamma.toarray() if sparse.issparse(gamma) else np.asarray(gamma)  # (D_{l-1}, D_l)
        below = (dense[:, :, None] * rows[None]).reshape(len(dense), -1)
        rows = np.hstack([np.ones((len(dense), 1)), below])
    return rows


def augment(codes: Any, deep_codes: Sequence[Any]) -> Any:
    """The paper's explicit codes of an n-layer network.

    Parameters
    ----------
    codes : sparse or dense (n, D_1)
        Layer 1 codes of n descriptors.
    deep_codes : sequence of sparse or dense (D_{l-1}, D_l)

    Returns
    -------
    augmented : csr_array (n, D_1 (1 + D_2 (1 + ...)))
        Atom j's block stands at columns j * width to (j + 1) * width.
    """
    codes = sparse.csr_array(codes)
    rows = path_coefficients(deep_codes, codes.shape[1])  # (D_1, width)
    n_atoms, width = rows.shape
    # Block diagonal: row j holds the coefficients of atom j in atom j's columns.
    columns = np.arange(n_atoms * width)
    block_diagonal = sparse.csr_array(
        (rows.ravel(), columns, np.arange(n_atoms + 1) * width), shape=(n_atoms, n_atoms * width)
    )
    return sparse.csr_array(codes @ block_diagonal)


def reconstruct(codes: Any, dictionaries: Sequence[Array], deep_codes: Sequence[Any] = ()) -> list[Array]:
    """Each layer's approximation of the descriptors: the paper's y', y'', ...

    Parameters
    ----------
    codes : sparse or dense (n, D_1)
    dictionaries : sequence of arrays (D_l, m)
    deep_codes : sequence of sparse or dense (D_{l-1}, D_l)
        One fewer than dictionaries.

    Returns
    -------
    approximations : list of ndarrays (n, m)
        Layer 1: Z V. Layer 2: Z Gamma U, every atom replaced by its approximation; and so on.
    """
    if len(deep_codes) != len(dictionaries) - 1:
        raise ValueError(
            f"deep_codes must have one entry fewer than dictionaries ({len(dictionaries)}); got {len(deep_codes)}"
        )
    approximations = [np.asarray(codes @ dictionaries[0])]
    for gamma, atoms in zip(deep_codes, dictionaries[1:], strict=True):
        codes = codes @ gamma
        approximations.append(np.asarray(codes @ atoms))
    return approximations


def _split(gamma: Any, power: float) -> tuple[Any, Any]:
    """|gamma|^power of the positive and of the negative entries, as two csr_arrays."""
    gamma = sparse.csr_array(gamma)
    powers = np.abs(gamma.data) ** power
    parts = (powers * (gamma.data > 0), powers * (gamma.data < 0))
    positive, negative = (sparse.csr_array((data, gamma.indices, gamma.indptr), shape=gamma.shape) for data in parts)
    return positive, negative

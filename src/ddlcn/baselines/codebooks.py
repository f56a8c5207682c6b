"""Codebooks for bags of features: descriptors X (n, m) of training images in, atoms D (n_atoms, m) out.

k-means         min_D  sum_i min_j ||x_i - d_j||^2                        (bags of words, kernel codebooks, LLC)
sparse coding   min_{D, Z}  sum_i 1/2 ||x_i - z_i D||^2 + alpha ||z_i||_1,  ||d_j|| <= 1      (ScSPM: Yang et al. 2009)

Neither has more atoms than there are distinct descriptors.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ddlcn.coding.lasso import LassoCoder
from ddlcn.coding.locality import BLOCK
from ddlcn.dictionaries.start import start_atoms
from ddlcn.engines.cpu.atom_update import update_block
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Lloyd's steps: with 50,000 SIFT descriptors of Caltech 101 and 1,024 centres the objective falls by 8.3 % in the first
# 20 and by 0.07 % in the next 20.
N_STEPS = 20
# Sparse dictionary: descriptors per mini-batch, and mini-batches: three passes over 50,000 descriptors.
BATCH, N_BATCHES = 2048, 75


def learn_centres(X: Array, n_atoms: int, seed: np.random.SeedSequence) -> Array:
    """Return the centres of k-means (n_atoms, m), of the dtype of X; the distinct rows if there are fewer."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_atoms:
        return distinct
    model = KMeans(n_atoms, init="random", n_init=1, max_iter=N_STEPS, random_state=int(seed.generate_state(1)[0]))
    # With several threads the order of sums, and so the result, would change from run to run.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.ascontiguousarray(model.fit(X).cluster_centers_, X.dtype)


def learn_sparse_dictionary(
    X: Array, n_atoms: int, alpha: float, seed: np.random.SeedSequence, n_jobs: int | None = None
) -> Array:
    """Atoms (n_atoms, m) in the unit ball over which X (n, m) has sparse codes.

    Differs from the paper: mini-batches and block coordinate descent (Mairal et al. 2009), where the paper alternates
    between all codes and all atoms. A = sum Z^T Z and B = sum Z^T X decay, as the first codes are poor.
    """
    rng = np.random.default_rng(seed)
    n_atoms = min(n_atoms, len(np.unique(X, axis=0)))
    D = start_atoms(X, n_atoms, None, rng).astype(np.float64)
    X = X.astype(np.float64)
    A, B = np.zeros((n_atoms, n_atoms)), np.zeros(D.shape)
    parts = np.array_split(rng.permutation(len(X)), max(1, round(len(X) / BATCH)))
    for t in range(N_BATCHES):
        batch = X[parts[t % len(parts)]]
        Z, losses = _encode(LassoCoder(D, alpha), batch, n_jobs)
        decay = (t / (t + 1)) ** 2
        A = decay * A + (Z.T @ Z).toarray()
        B = decay * B + Z.T @ batch
        update_block(D, B - A @ D, A, 0, 0.0)
        # An unused atom is replaced by a badly approximated descriptor.
        dead = np.flatnonzero(np.diagonal(A) == 0.0)
        if len(dead) and t < N_BATCHES - 1:
            worst = np.argsort(-losses, kind="stable")[: len(dead)]
            D[dead[: len(worst)]] = start_atoms(batch[worst], len(worst), None, rng)
    return D


def _encode(coder: LassoCoder, X: Array, n_jobs: int | None) -> tuple[Any, Array]:
    """Return codes (n, atoms) CSR of X (n, m), and the loss 1/2 ||x - z D||^2 of each row (n,)."""

    def encode(start: int) -> Any:
        return sparse.csr_array(coder.encode_dense(X[start : start + BLOCK])[0])

    Z = sparse.vstack(list(map_threads(encode, range(0, len(X), BLOCK), n_jobs)), format="csr")
    residual = X - Z @ coder.atoms
    return Z, 0.5 * np.einsum("ij,ij->i", residual, residual)

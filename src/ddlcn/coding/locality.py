"""Descriptors and atoms in, codes out: the locality-constrained, sum-to-one coder (DESIGN 2, "Coding").

    min_z  1/2 ||x - z V||^2 + beta * sum_j zeta_j |z_j|     subject to  sum_j z_j = 1,    zeta_j = ||x - v_j||

`encode` is the public function: it checks, cuts into blocks, shares them among threads. `LocalityCoder` holds what a
dictionary needs to be prepared once, and codes one block; the fused pipeline of the classifier uses it directly.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ddlcn._threads import map_threads
from ddlcn._validation import check_count, check_matrix, check_number
from ddlcn.engines import get_engine

# Up to this many atoms their mutual distances are kept in a table (2048^2 * 8 = 32 MB); beyond, the few that a
# descriptor needs are computed on the spot, which costs less than 10% of the matrix product there.
MAX_TABLE_ATOMS = 2048
# Descriptors per block: the block of X D^T for 570 atoms then stays in a core's own cache.
BLOCK = 256

_scratch = threading.local()


def _multiply(X: NDArray[Any], A: NDArray[Any]) -> NDArray[Any]:
    """X A^T, in an array that this thread keeps for the next block: fresh pages would cost 5% of the coding."""
    size = X.shape[0] * A.shape[0]
    buffer = getattr(_scratch, "buffer", None)
    if buffer is None or buffer.size < size or buffer.dtype != A.dtype:
        buffer = _scratch.buffer = np.empty(size, A.dtype)
    product: NDArray[Any] = np.matmul(X, A.T, out=buffer[:size].reshape(X.shape[0], A.shape[0]))
    return product


class CodeBlock(NamedTuple):
    """Codes of n descriptors: row i holds `counts[i]` entries, by ascending atom."""

    indices: NDArray[np.int32]  # (n, width)
    values: NDArray[np.float64]  # (n, width)
    counts: NDArray[np.int32]  # (n,)
    kkt: NDArray[np.float64]  # (n,)


@dataclass(frozen=True)
class CodingResult:
    """What `encode` returns.

    Attributes
    ----------
    codes : scipy.sparse.csr_array (n, atoms), float64
        Rows sum to one.
    kkt : ndarray (n,)
        The certificate: the largest violation of the optimality conditions of the problem that was solved (the one
        restricted to the nearest atoms when `n_neighbors` is given), divided by beta * max zeta (by 1 where that is 0).
    converged : bool
        Whether every certificate is within `tol`.
    """

    codes: Any
    kkt: NDArray[np.float64]
    converged: bool


class LocalityCoder:
    """A dictionary prepared for coding.

    Parameters
    ----------
    atoms : ndarray (atoms, m), float32 or float64
    beta : float
        Weight of the locality penalty.
    n_neighbors : int or None
        Solve on this many nearest atoms; None, or more than there are, means all.
    tol : float
        Bound on the certificate.
    engine : str
        Which kernels.
    """

    def __init__(
        self,
        atoms: NDArray[Any],
        beta: float,
        n_neighbors: int | None,
        tol: float,
        engine: str = "auto",
    ) -> None:
        self._engine = get_engine(engine)
        self._atoms = atoms
        self._beta = beta
        self._tol = tol
        n_atoms, m = atoms.shape
        self._k = None if n_neighbors is None or n_neighbors >= n_atoms else n_neighbors
        if self._k is not None:
            self.width = self._k
        else:
            # The atoms of a basis are affinely independent, so at most m + 1 of them; a few more while they are tried.
            self.width = min(n_atoms, m + 2 + self._engine.N_GROW)
        # Distances do not change when everything is moved, so the atoms' mean goes to the origin: nothing cancels.
        self._mean = atoms.mean(axis=0, dtype=np.float64)
        self._centred = atoms.astype(np.float64) - self._mean  # (atoms, m)
        self._norms = np.einsum("ij,ij->i", self._centred, self._centred)  # (atoms,)
        self._table = np.empty((0, 0))
        if n_atoms <= MAX_TABLE_ATOMS:
            self._table = np.empty((n_atoms, n_atoms))
            self._engine.measure_distances(atoms, self._table)
        if self._k is not None:
            lanes = self._engine.count_lanes(self._k)
            n_padded = -(-n_atoms // lanes) * lanes
            self._atoms32 = np.zeros((n_padded, m), np.float32)
            with np.errstate(over="ignore"):
                self._atoms32[:n_atoms] = atoms
            # Padding is farther than anything, and float32 can still tell.
            self._half_norms = np.full((n_padded // lanes, lanes), 3e38, np.float32)
            norms = np.einsum("ij,ij->i", atoms, atoms, dtype=np.float64)
            self._half_norms.ravel()[:n_atoms] = np.minimum(0.5 * norms, 3e38)
            self._largest_norm = float(np.sqrt(norms.max()))

    def encode_block(self, X: NDArray[Any]) -> CodeBlock:
        """Code a block of descriptors (n, m), of the atoms' dtype, in the calling thread."""
        n = X.shape[0]
        block = CodeBlock(
            np.empty((n, self.width), np.int32), np.empty((n, self.width)), np.empty(n, np.int32), np.empty(n)
        )
        if self._k is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # the kernel does without H where it overflows
                H = _multiply(X.astype(np.float32, copy=False), self._atoms32)
            H = H.reshape(n, *self._half_norms.shape)  # (n, depth, lanes)
            self._engine.code_nearest(
                X, self._atoms, H, self._half_norms, self._largest_norm, self._table, self._centred,
                self._k, self._beta, self._tol, *block,
            )  # fmt: skip
        else:
            centred = X - self._mean  # (n, m) float64
            H = _multiply(centred, self._centred)  # (n, atoms)
            x_norms = np.einsum("ij,ij->i", centred, centred)
            self._engine.code_all(
                X, self._atoms, H, self._norms, self._table, self._centred, x_norms, self._beta, self._tol, *block
            )
        return block

    def pack(self, block: CodeBlock) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Indices and values of a block's codes, row after row without gaps: the arrays of a CSR matrix."""
        size = int(block.counts.sum())
        indices, values = np.empty(size, np.int32), np.empty(size)
        self._engine.pack_codes(block.indices, block.values, block.counts, indices, values)
        return indices, values


def encode(
    X: ArrayLike,
    D: ArrayLike,
    beta: float = 0.02,
    n_neighbors: int | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
) -> CodingResult:
    """Code every descriptor over the atoms of a dictionary, exactly, with a certificate.

    Parameters
    ----------
    X : array (n, m)
        Descriptors, one per row.
    D : array (atoms, m)
        Atoms, one per row.
    beta : float, default 0.02
        Weight of the locality penalty. With 0 the nearest affine combination is found; where more than one is, one.
    n_neighbors : int, optional
        Solve on this many nearest atoms (ties go to the lower index). None, or more than there are, means all atoms: a
        different problem, and a different code.
    tol : float, default 1e-6
        Bound on the certificate.
    n_jobs : int, optional
        Threads; None means all cores. The codes do not depend on it.

    Returns
    -------
    CodingResult
        `.codes` (n, atoms) CSR, `.kkt` (n,), `.converged`.
    """
    atoms = check_matrix("D", D, "atom")
    descriptors = check_matrix("X", X, "descriptor", n_columns=atoms.shape[1])
    beta = check_number("beta", beta)
    tol = check_number("tol", tol, above=True)
    if n_neighbors is not None:
        n_neighbors = check_count("n_neighbors", n_neighbors)
    if descriptors.dtype != atoms.dtype:
        descriptors, atoms = descriptors.astype(np.float64), atoms.astype(np.float64)
    return _encode(descriptors, LocalityCoder(atoms, beta, n_neighbors, tol), tol, atoms.shape[0], n_jobs)


def _encode(X: NDArray[Any], coder: LocalityCoder, tol: float, n_atoms: int, n_jobs: int | None) -> CodingResult:
    """`encode`, of checked arguments and a prepared dictionary."""
    n = X.shape[0]
    kkt, starts = np.empty(n), np.zeros(n + 1, np.int64)

    def encode_part(start: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        block = coder.encode_block(X[start : start + BLOCK])
        kkt[start : start + BLOCK] = block.kkt
        starts[start + 1 : start + 1 + BLOCK] = block.counts
        return coder.pack(block)

    indices, values = zip(*map_threads(encode_part, range(0, n, BLOCK), n_jobs), strict=True)
    np.cumsum(starts, out=starts)
    codes = sparse.csr_array((np.concatenate(values), np.concatenate(indices), starts), shape=(n, n_atoms), copy=False)
    return CodingResult(codes, kkt, bool(np.all(kkt <= tol)))

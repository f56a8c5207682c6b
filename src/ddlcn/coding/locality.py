"""Descriptors and atoms in, codes out: the locality-constrained, sum-to-one coder (docs/method.md, "Coding").

    min_z  1/2 ||x - z V||^2 + beta * sum_j zeta_j |z_j|     subject to  sum_j z_j = 1,    zeta_j = ||x - v_j||

`encode` is the public function: it validates, cuts X into blocks and distributes them over threads. `LocalityCoder` is
a dictionary prepared once; it codes one block, and the classifier's batched transform uses it directly.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ddlcn.engines import get_engine
from ddlcn.utils.threads import count_threads, map_threads
from ddlcn.utils.validation import check_count, check_matrix, check_number

# Up to this many atoms their mutual distances are kept in a table (2048^2 * 8 = 32 MB); beyond, the few that a
# descriptor needs are computed on demand, which costs less than 10% of the matrix product there.
MAX_TABLE_ATOMS = 2048
# Descriptors per block: the block of X D^T for 570 atoms then about stays in a core's cache. With 256 one thread is as
# quick, but two wait for each other's Python between the kernels: 96 photos, preset "accurate", 1.5 s for 1.4.
BLOCK = 512
# Descriptors per task of a thread: two blocks, so that scheduling costs almost nothing.
PART = 2 * BLOCK
# Dictionaries beyond this, or below its inverse, are scaled to about 1: squares must fit into float32.
LARGE = 1e6

# Buffers that a thread reuses for its next block: new pages of memory would cost more than a tenth of the coding.
_scratch = threading.local()


class CodeBlock(NamedTuple):
    """Codes of n descriptors: row i holds `counts[i]` entries, by ascending atom."""

    indices: NDArray[np.int32]  # (n, width)
    values: NDArray[np.float64]  # (n, width)
    counts: NDArray[np.int32]  # (n,)
    kkt: NDArray[np.float64]  # (n,)


class TracedCodes(NamedTuple):
    """Codes of n descriptors by all layers. A use is a descriptor and one of the layer 1 atoms in its code."""

    codes: CodeBlock  # concatenated, as of `encode_block`
    layer1: CodeBlock
    deeper: list[CodeBlock]  # of the uses, one per deeper layer
    scales: list[NDArray[np.float64]]  # (uses,) each


def borrow(name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return this thread's buffer of that name, uninitialised; valid until it is borrowed again."""
    size = math.prod(shape)
    buffer = getattr(_scratch, name, None)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, dtype)
        setattr(_scratch, name, buffer)
    return buffer[:size].reshape(shape)


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
        Solve on this many nearest atoms; None, or more than the number of atoms, means all.
    tol : float
        Bound on the certificate.
    n_jobs : int, optional
        Threads for the preparation.
    """

    def __init__(
        self,
        atoms: NDArray[Any],
        beta: float,
        n_neighbors: int | None,
        tol: float,
        n_jobs: int | None = 1,
    ) -> None:
        self._engine = get_engine()
        largest = float(np.abs(atoms).max())
        self._unit = 1.0  # dividing atoms, descriptors and beta by it leaves codes and certificates unchanged
        if largest > 0.0 and not 1.0 / LARGE <= largest <= LARGE:
            self._unit = 2.0 ** round(math.log2(largest))
            atoms, beta = atoms / self._unit, beta / self._unit
        self._atoms = atoms
        self._beta = beta
        self._tol = tol
        n_atoms, m = atoms.shape
        self.n_atoms, self.n_dimensions, self.dtype = n_atoms, m, atoms.dtype
        self._k = None if n_neighbors is None or n_neighbors >= n_atoms else n_neighbors
        if self._k is not None:
            self.width = self._k
        else:
            # The atoms of a basis are affinely independent: at most m + 1, and a few more candidates.
            self.width = min(n_atoms, m + 2 + self._engine.N_EXPAND)
        self._table = np.empty((0, 0))
        if n_atoms <= MAX_TABLE_ATOMS:
            self._table = np.empty((n_atoms, n_atoms))
            n_parts = count_threads(n_jobs)
            measure = self._engine.measure_distances
            list(map_threads(lambda part: measure(atoms, part, n_parts, self._table), range(n_parts), n_jobs))
        if self._k is not None:
            lanes = self._engine.count_lanes(self._k)
            n_padded = -(-n_atoms // lanes) * lanes
            self._atoms32 = np.zeros((n_padded, m), np.float32)
            with np.errstate(over="ignore"):
                self._atoms32[:n_atoms] = atoms
            # Padding is farther than any atom, and still finite in float32.
            self._half_norms = np.full((n_padded // lanes, lanes), 3e38, np.float32)
            norms = np.einsum("ij,ij->i", atoms, atoms, dtype=np.float64)
            self._half_norms.ravel()[:n_atoms] = np.minimum(0.5 * norms, 3e38)
            self._largest_norm = float(np.sqrt(norms.max()))
            self._tight = np.ones(BLOCK)
        else:
            # Distances are invariant to translation, so the atoms' mean is moved to the origin: less rounding.
            self._mean = atoms.mean(axis=0, dtype=np.float64)
            self._atoms32 = (atoms - self._mean).astype(np.float32)  # (atoms, m)
            self._norms = np.einsum("ij,ij->i", self._atoms32, self._atoms32)  # (atoms,)
            self._largest_norm = float(np.sqrt(self._norms.max()))
            self._table32 = self._table.astype(np.float32)

    def encode_block(self, X: NDArray[Any]) -> CodeBlock:
        """Code a block of descriptors (n, m), of the atoms' dtype, in the calling thread."""
        block = self._make_block(len(X))
        self._encode_into(X, block)
        return block

    def trace_block(self, X: NDArray[Any]) -> TracedCodes:
        """As `encode_block`, in the form that coders of several layers have."""
        codes = self.encode_block(X)
        return TracedCodes(codes, codes, [], [])

    def _make_block(self, n: int) -> CodeBlock:
        return CodeBlock(
            np.empty((n, self.width), np.int32), np.empty((n, self.width)), np.empty(n, np.int32), np.empty(n)
        )

    @property
    def projection(self) -> NDArray[np.float32] | None:
        """Atoms (padded, m) whose products `encode_projected` takes; None where it cannot be used."""
        return self._atoms32 if self._k is not None and self._unit == 1.0 else None

    def encode_projected(self, X: NDArray[Any], H: NDArray[np.float32], looseness: NDArray[np.float64]) -> CodeBlock:
        """As `encode_block`, with the products H = X projection^T (n, padded) at hand.

        They only shortlist atoms: the nearest are found exactly. `looseness` (n,) says how many times the error of H
        exceeds that of a float32 product.
        """
        assert self._k is not None  # or there is no projection
        block = self._make_block(len(X))
        self._solve_nearest(X, H, looseness, self._k, *block)
        return block

    def encode_packed(
        self, X: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
        """As `encode_block`, with the rows concatenated: indices, values (codes,); counts, kkt (n,)."""
        n = X.shape[0]
        block = CodeBlock(
            borrow("indices", (n, self.width), np.int32),
            borrow("values", (n, self.width), np.float64),
            np.empty(n, np.int32),
            np.empty(n),
        )
        self._encode_into(X, block)
        n_codes = int(block.counts.sum())
        indices, values = np.empty(n_codes, np.int32), np.empty(n_codes)
        self._engine.pack_codes(block.indices, block.values, block.counts, indices, values)
        return indices, values, block.counts, block.kkt

    def _encode_into(self, X: NDArray[Any], block: CodeBlock) -> None:
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            x = X[rows] if self._unit == 1.0 else X[rows] / self._unit
            out = (array[rows] for array in block)
            if self._k is not None:
                self._encode_nearest(x, self._k, *out)
            else:
                self._encode_all(x, *out)

    def _encode_nearest(self, X: NDArray[Any], k: int, *out: NDArray[Any]) -> None:
        H = borrow("product", (X.shape[0], self._atoms32.shape[0]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # the kernel ignores H where it overflows
            np.matmul(X.astype(np.float32, copy=False), self._atoms32.T, out=H)
        self._solve_nearest(X, H, self._tight, k, *out)

    def _solve_nearest(self, X: NDArray[Any], H: Any, looseness: NDArray[Any], k: int, *out: NDArray[Any]) -> None:
        self._engine.code_nearest(
            X, self._atoms, H.reshape(-1, *self._half_norms.shape), looseness, self._half_norms, self._largest_norm,
            self._table, k, self._beta, self._tol, *out,
        )  # fmt: skip

    def _encode_all(self, X: NDArray[Any], *out: NDArray[Any]) -> None:
        with np.errstate(over="ignore"):
            centred = (X - self._mean).astype(np.float32)  # (n, m)
            x_norms = np.einsum("ij,ij->i", centred, centred)
        if not np.isfinite(x_norms).all():
            raise ValueError("X holds descriptors 1e18 times as large as the atoms of D: scale them first")
        H = borrow("product", (X.shape[0], self._atoms32.shape[0]), np.float32)
        np.matmul(centred, self._atoms32.T, out=H)  # (n, atoms)
        self._engine.code_all(
            X, self._atoms, H, self._norms, x_norms, self._largest_norm, self._table, self._table32, self._atoms32,
            self._beta, self._tol, *out,
        )  # fmt: skip


def trace(coder: Any, X: NDArray[Any]) -> TracedCodes:
    """Codes of many descriptors (n, m), block after block, in the calling thread; of any coder with `trace_block`."""
    blocks = [coder.trace_block(X[start : start + BLOCK]) for start in range(0, max(1, len(X)), BLOCK)]
    layer1 = join_blocks([block.layer1 for block in blocks])
    deeper = [join_blocks(parts) for parts in zip(*(block.deeper for block in blocks), strict=True)]
    scales = [np.concatenate(parts) for parts in zip(*(block.scales for block in blocks), strict=True)]
    return TracedCodes(join_blocks([block.codes for block in blocks]) if deeper else layer1, layer1, deeper, scales)


def join_blocks(blocks: Sequence[CodeBlock]) -> CodeBlock:
    """Blocks of the same width, one below the other."""
    return CodeBlock(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def encode(
    X: ArrayLike,
    D: ArrayLike,
    beta: float = 0.15,
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
    beta : float, default 0.15
        Weight of the locality penalty. With 0, the nearest affine combination (one of them if several).
    n_neighbors : int, optional
        Solve on this many nearest atoms (ties go to the lower index). None, or more than the number of atoms, means all
        atoms: a different problem, and a different code.
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
    return _encode(
        descriptors, LocalityCoder(atoms, beta, n_neighbors, tol, n_jobs=n_jobs), tol, atoms.shape[0], n_jobs
    )


def _encode(X: NDArray[Any], coder: LocalityCoder, tol: float, n_atoms: int, n_jobs: int | None) -> CodingResult:
    """`encode` on validated arguments and a prepared dictionary."""
    n = X.shape[0]
    parts = map_threads(lambda start: coder.encode_packed(X[start : start + PART]), range(0, n, PART), n_jobs)
    indices, values, counts, kkt = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    codes = sparse.csr_array((values, indices, offsets), shape=(n, n_atoms), copy=False)
    return CodingResult(codes, kkt, bool(np.all(kkt <= tol)))

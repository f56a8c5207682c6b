"""Sparse coding with an l1 penalty (the lasso; Tibshirani 1996): descriptors and atoms in, codes and duality gaps out.

    min_z  1/2 ||x - z D||^2 + alpha ||z||_1

Only inner products are needed: h = D x, G = D D^T and ||x||^2. The atoms that violate the optimality conditions most
enter a small working set, on which an active-set method solves the problem (feature-sign search, Lee et al. 2007): the
worst atom enters the support S, G_SS z_S = h_S - alpha sign(z_S) is solved by an updated Cholesky factor, and an atom
whose code would change its sign leaves. Then the conditions are checked on all atoms, and so on. Coordinate descent is
slow where atoms are similar (50 times slower on 1,216 faces, alpha = 0.001); this is not. A code of several hundred
nonzeros starts from `lasso_blocks`, which exchanges many atoms at a time.

`encode_lasso` is the public function; `LassoCoder` is a dictionary prepared once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ddlcn.coding.lasso_blocks import exchange_blocks
from ddlcn.coding.locality import BLOCK, CodeBlock
from ddlcn.engines.cpu.lasso import solve_lasso
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_matrix, check_number

Array = NDArray[Any]

# Above this number of nonzeros, exchanging one atom at a time is slower than blocks: 4 times with 1,010 atoms and 520
# nonzeros, 12 times with 2,020 atoms and 920 nonzeros.
LONG = 128


@dataclass(frozen=True)
class LassoResult:
    """What `encode_lasso` returns.

    Attributes
    ----------
    codes : scipy.sparse.csr_array (n, atoms), float64
    gap : ndarray (n,)
        The certificate: objective minus its dual bound, divided by the objective at z = 0 (by 1 where that is 0). No
        code is better by more.
    converged : bool
        Whether every certificate is within `tol`.
    """

    codes: Any
    gap: NDArray[np.float64]
    converged: bool


class LassoCoder:
    """A dictionary prepared for sparse coding. The Gram matrix takes 8 atoms^2 bytes.

    Parameters
    ----------
    atoms : ndarray (atoms, m)
    alpha : float
        Weight of the l1 norm, above 0.
    tol : float
        Bound on the relative duality gap.
    """

    def __init__(self, atoms: Array, alpha: float, tol: float = 1e-6) -> None:
        self.atoms = np.ascontiguousarray(atoms, np.float64)
        self.gram = self.atoms @ self.atoms.T
        self._alpha, self._tol = alpha, tol
        self.n_atoms, self.n_dimensions = self.atoms.shape
        # Some optimal code has at most as many nonzeros as dimensions; one more while an atom replaces another.
        self.width = min(self.n_atoms, self.n_dimensions + 1)
        self.dtype = self.atoms.dtype

    def encode_dense(self, X: Array) -> tuple[Array, NDArray[np.float64]]:
        """Codes (n, atoms) and relative duality gaps (n,) of descriptors X (n, m), in the calling thread."""
        X = np.asarray(X, np.float64)
        Z, gap = np.zeros((len(X), self.n_atoms)), np.empty(len(X))
        H, squares = X @ self.atoms.T, np.einsum("ij,ij->i", X, X)
        solve_lasso(self.gram, H, squares, self.width, self._alpha, self._tol, LONG, Z, gap)
        long = np.flatnonzero(gap > self._tol)
        if len(long):
            codes = np.stack([exchange_blocks(self.gram, H[i], Z[i], self.width, self._alpha) for i in long])
            gaps = np.empty(len(long))
            solve_lasso(
                self.gram, H[long], squares[long], self.width, self._alpha, self._tol, self.n_atoms, codes, gaps
            )
            Z[long], gap[long] = codes, gaps
        return Z, gap

    def encode_block(self, X: Array) -> CodeBlock:
        """Code a block of descriptors (n, m), in the calling thread; `kkt` holds the gaps."""
        Z, gap = self.encode_dense(X)
        rows, atoms = np.divmod(np.flatnonzero(Z != 0.0), self.n_atoms)  # four times faster than np.nonzero(Z)
        counts = np.bincount(rows, minlength=len(Z)).astype(np.int32)
        slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        indices, values = np.zeros((len(Z), self.width), np.int32), np.zeros((len(Z), self.width))
        indices[rows, slots], values[rows, slots] = atoms, Z[rows, atoms]
        return CodeBlock(indices, values, counts, gap)


def encode_lasso(X: ArrayLike, D: ArrayLike, alpha: float, tol: float = 1e-6, n_jobs: int | None = None) -> LassoResult:
    """Code every descriptor over the atoms of a dictionary, exactly, with a certificate.

    Parameters
    ----------
    X : array (n, m)
        Descriptors, one per row.
    D : array (atoms, m)
        Atoms, one per row, of any norm.
    alpha : float
        Weight of the l1 norm, above 0.
    tol : float, default 1e-6
        Bound on the duality gap, relative to the objective at z = 0, which is 1/2 ||x||^2.
    n_jobs : int, optional
        Threads; None means all cores. The codes do not depend on it.

    Returns
    -------
    LassoResult
        `.codes` (n, atoms) CSR, `.gap` (n,), `.converged`.
    """
    atoms = check_matrix("D", D, "atom")
    descriptors = check_matrix("X", X, "descriptor", n_columns=atoms.shape[1])
    tol = check_number("tol", tol, above=True)
    coder = LassoCoder(atoms, check_number("alpha", alpha, above=True), tol)

    def encode(start: int) -> tuple[Any, NDArray[np.float64]]:
        Z, gap = coder.encode_dense(descriptors[start : start + BLOCK])
        return sparse.csr_array(Z), gap

    codes, gaps = zip(*map_threads(encode, range(0, len(descriptors), BLOCK), n_jobs), strict=True)
    gap = np.concatenate(gaps)
    return LassoResult(sparse.vstack(codes, format="csr"), gap, bool(np.all(gap <= tol)))

"""Orthogonal matching pursuit (Pati et al. 1993), in the Gram domain (Rubinstein et al. 2008, "Batch-OMP").

    min_z  ||x - z D||^2     subject to  at most `n_nonzero` entries of z that are not zero

greedily: the atom with the largest product with the residual of x is selected, and x is projected on all selected
atoms. Only G = D D^T and x D^T are needed. With G_SS = L L^T for the selected atoms S, the kernel keeps the rows of
P = L^-1 G_S: (one per selected atom): a column of P is the next row of L, and one row of P updates the products with
the residual. So no system is solved until the end, when L^T z = a gives the code.

Rows in: items X (n, m), atoms D (atoms, m). Rows out: codes (n, atoms), sparse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.compile import kernel
from ddlcn.utils.sparse_rows import make_csr
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_matrix, check_number

Array = NDArray[Any]
# Items coded at a time by one thread: their products with 600 atoms (0.6 MB) stay in its cache.
BLOCK = 128


def encode_omp(
    X: Array,
    D: Array,
    n_nonzero: int,
    tol: float | None = None,
    n_jobs: int | None = None,
    *,
    gram: Array | None = None,
) -> Any:
    """Codes of X by orthogonal matching pursuit, as a csr_array (n, atoms).

    Parameters
    ----------
    X : ndarray (n, m)
    D : ndarray (atoms, m)
        Rows of unit norm. Ties go to the first atom.
    n_nonzero : int
        Most nonzeros of a code. Fewer where the residual is zero, or no further atom is independent of the selected.
    tol : float, optional
        Stop when the squared norm of the residual is at most this.
    n_jobs : int, optional
    gram : ndarray (atoms, atoms), optional
        D D^T, if already computed.
    """
    D = check_matrix("D", D, "atom").astype(np.float64, copy=False)
    X = check_matrix("X", X, "item", D.shape[1]).astype(np.float64, copy=False)
    width = min(check_count("n_nonzero", n_nonzero), len(D))
    limit = -1.0 if tol is None else check_number("tol", tol)
    gram = D @ D.T if gram is None else gram
    parts = map_threads(lambda rows: pursue(X[rows], D, gram, width, limit), iter_blocks(len(X)), n_jobs)
    columns, values, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    filled = np.arange(width) < counts[:, None]
    return make_csr(values[filled], columns[filled], np.append(0, np.cumsum(counts)), (len(X), len(D)))


def iter_blocks(n: int) -> Iterator[slice]:
    """Yield rows 0 .. n - 1 in blocks."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def pursue(X: Array, D: Array, gram: Array, width: int, limit: float = -1.0) -> tuple[Array, Array, Array]:
    """Codes of a block X (n, m): columns (ascending) and values (n, width), and the number of nonzeros (n,)."""
    return pursue_products(gram, X @ D.T, np.einsum("ij,ij->i", X, X), width, limit)


def pursue_products(
    gram: Array, products: Array, squares: Array, width: int, limit: float = -1.0
) -> tuple[Array, Array, Array]:
    """The same from products x D^T (n, atoms), which are overwritten, and squared norms ||x||^2 (n,)."""
    columns = np.zeros((len(products), width), np.int32)
    values = np.zeros((len(products), width))
    counts = np.zeros(len(products), np.int32)
    _pursue(gram, products, squares, limit, columns, values, counts)
    return columns, values, counts


@kernel
def _pursue(
    gram: Array, products: Array, squares: Array, limit: float, columns: Array, values: Array, counts: Array
) -> None:
    """Fill columns, values and counts from x D^T (n, atoms), which are overwritten, and ||x||^2 (n,)."""
    n_items, width = columns.shape
    n_atoms = len(gram)
    P = np.empty((width, n_atoms))
    selected = np.empty(width, np.int32)
    root = np.empty(width)  # diagonal of L
    along = np.empty(width)  # a: x along each new direction of the basis
    for i in range(n_items):
        residual = products[i]  # products of every atom with the residual of x
        square = squares[i]
        # Rounding leaves about 1e-16 ||x|| of a residual that is zero.
        zero = 1e-13 * np.sqrt(square)
        k = 0
        while k < width and square > limit:
            peak = 0.0
            for j in range(n_atoms):
                peak = max(peak, abs(residual[j]))
            if peak <= zero:
                break
            # Values equal up to rounding tie: the choice must not depend on the order of sums.
            peak *= 1.0 - 1e-12
            best = 0
            while abs(residual[best]) < peak:
                best += 1
            pivot = gram[best, best]
            for q in range(k):
                pivot -= P[q, best] * P[q, best]
            if pivot <= 1e-12 * gram[best, best]:  # dependent on the selected: its product is rounding
                break
            root[k] = np.sqrt(pivot)
            along[k] = residual[best] / root[k]
            selected[k] = best
            k += 1
            if k == width:
                break
            row = P[k - 1]
            row[:] = gram[best]
            q = 0
            while q + 4 <= k - 1:  # four rows at a time: a quarter of the loads and stores of `row`
                c0, c1, c2, c3 = P[q, best], P[q + 1, best], P[q + 2, best], P[q + 3, best]
                P0, P1, P2, P3 = P[q], P[q + 1], P[q + 2], P[q + 3]
                for j in range(n_atoms):
                    row[j] -= c0 * P0[j] + c1 * P1[j] + c2 * P2[j] + c3 * P3[j]
                q += 4
            while q < k - 1:
                c0, P0 = P[q, best], P[q]
                for j in range(n_atoms):
                    row[j] -= c0 * P0[j]
                q += 1
            scale, step = 1.0 / root[k - 1], along[k - 1]
            for j in range(n_atoms):
                row[j] *= scale
                residual[j] -= step * row[j]
            for q in range(k):
                residual[selected[q]] = 0.0  # exactly: the residual is orthogonal to the selected
            square -= step * step
        for r in range(k - 1, -1, -1):  # L^T z = a
            total = along[r]
            for q in range(r + 1, k):
                total -= P[r, selected[q]] * along[q]
            along[r] = total / root[r]
        for r in range(k):  # in ascending order of columns
            slot = r
            while slot > 0 and columns[i, slot - 1] > selected[r]:
                columns[i, slot] = columns[i, slot - 1]
                values[i, slot] = values[i, slot - 1]
                slot -= 1
            columns[i, slot] = selected[r]
            values[i, slot] = along[r]
        counts[i] = k

"""The exact locality coder against SPAMS `lassoWeighted`, the bare matrix product, and scikit-learn.

SPAMS solves  min_z 1/2 ||x - z V||^2 + beta * sum_j zeta_j |z_j|  with the same zeta_j = ||x - v_j||, but without the
constraint sum_j z_j = 1. It gets the distances ready-made and everything in its own memory layout, none of which is in
its time; `encode` finds the distances itself and returns certificates. The bars are for SPAMS in float32, which is its
faster half; `encode` solves its small systems in float64, so SPAMS in float64 is shown as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals import spams
from benchmarks.timing import NOT_INSTALLED, Bar, Row, format_rate, time_in_turns
from ddlcn import encode
from ddlcn.coding.locality import BLOCK

Array = NDArray[Any]
# SPAMS's number for "penalty, not constraint".
SPAMS_PENALTY = 2


def compare_encoding(
    X: Array,
    atoms: Array,
    beta: float,
    n_neighbors: int | None,
    *,
    n_spams: int,
    n_sklearn: int,
    repeats: int,
    against_spams: Bar,
    against_product: Bar | None,
    against_one_thread: Bar,
) -> list[Row]:
    """Rows for one setting of the coder: X (n, m) and atoms (atoms, m) in float32.

    The slow peers get the first `n_spams` and `n_sklearn` descriptors only; all are compared by time per code.
    """
    contenders: dict[str, Callable[[], object]] = {}
    sizes: dict[str, int] = {}

    def enter(name: str, n: int, work: Callable[[], object]) -> None:
        contenders[name], sizes[name] = work, n

    for threads in (1, 2):
        enter(
            f"ddlcn {threads}",
            len(X),
            lambda threads=threads: encode(X, atoms, beta=beta, n_neighbors=n_neighbors, n_jobs=threads),
        )
    enter("product", len(X), lambda: multiply_in_blocks(X, atoms))
    if spams is not None:
        arrays = prepare_for_spams(X[:n_spams], atoms)
        # On k neighbours a code has at most k entries; SPAMS has no neighbours but stops at so many entries.
        most = -1 if n_neighbors is None else n_neighbors
        arrays64 = tuple(array.astype(np.float64, order="F") for array in arrays)
        for name, problem, threads in (("SPAMS 1", arrays, 1), ("SPAMS64 1", arrays64, 1), ("SPAMS 2", arrays, 2)):
            enter(
                name,
                n_spams,
                lambda problem=problem, threads=threads: spams.lassoWeighted(
                    *problem, L=most, lambda1=beta, mode=SPAMS_PENALTY, pos=False, numThreads=threads
                ),
            )
    # scikit-learn has one penalty for all atoms: their mean distance, times beta.
    alpha = beta * float(distances(X[:n_sklearn], atoms).mean())
    enter("sklearn", n_sklearn, lambda: encode_with_sklearn(X[:n_sklearn], atoms, alpha))

    best = time_in_turns(contenders, repeats)
    rate = {name: sizes[name] / seconds for name, seconds in best.items()}  # codes per second

    def row(threads: int, other: str, label: str, bar: Bar | None = None, *, slower: bool = False) -> Row:
        ours = rate[f"ddlcn {threads}"]
        if other not in rate:
            return Row(what, threads, format_rate(ours, "codes"), f"{label} {NOT_INSTALLED}", None, bar)
        ratio = rate[other] / ours if slower else ours / rate[other]
        return Row(
            what, threads, format_rate(ours, "codes"), f"{label} {format_rate(rate[other], 'codes')}", ratio, bar
        )

    nearest = "all atoms" if n_neighbors is None else f"k={n_neighbors}"
    what = f"encode, {len(atoms)} atoms, {nearest}, beta {beta:g}"
    rows = [
        row(1, "SPAMS 1", "SPAMS lassoWeighted", against_spams),
        row(1, "SPAMS64 1", "the same in float64"),
        row(1, "product", "X V^T alone", against_product, slower=True),
        row(1, "sklearn", "scikit-learn lasso_cd"),
        row(2, "SPAMS 2", "SPAMS lassoWeighted"),
        row(2, "ddlcn 1", "one thread", against_one_thread),
    ]
    return rows


def distances(X: Array, atoms: Array) -> Array:
    """||x_i - v_j|| as (n, atoms), in float64 before it is rounded: nothing cancels."""
    X, atoms = X.astype(np.float64), atoms.astype(np.float64)
    squares = (X**2).sum(axis=1)[:, None] + (atoms**2).sum(axis=1) - 2.0 * (X @ atoms.T)
    return np.sqrt(np.maximum(squares, 0.0)).astype(np.float32)


def prepare_for_spams(X: Array, atoms: Array) -> tuple[Array, Array, Array]:
    """Descriptors, atoms and weights as columns of Fortran arrays, the only layout that SPAMS takes."""
    return np.asfortranarray(X.T), np.asfortranarray(atoms.T), np.asfortranarray(distances(X, atoms).T)


def multiply_in_blocks(X: Array, atoms: Array) -> None:
    """X V^T and nothing else, block by block as the coder does it, into memory that stays in cache."""
    out = np.empty((BLOCK, len(atoms)), X.dtype)
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK]
        np.dot(block, atoms.T, out=out[: len(block)])


def encode_with_sklearn(X: Array, atoms: Array, alpha: float) -> Array:
    with warnings.catch_warnings():
        # Its tolerance lies below what float32 can reach, so it warns on most descriptors.
        warnings.simplefilter("ignore", ConvergenceWarning)
        codes: Array = sparse_encode(X, atoms, algorithm="lasso_cd", alpha=alpha, n_jobs=1)
    return codes

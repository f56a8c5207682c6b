"""One dictionary. In: descriptors X (n, m). Out: atoms V (n_atoms, m) in the unit ball.

Solves, approximately (it is not convex), the problem of docs/method.md, "Layer 1 dictionary":

    min over V, a_1 .. a_n of mean_i 1/2 ||x_i - a_i V||^2   subject to  ||a_i||_1 <= l1_radius, ||v_j|| <= 1

by online dictionary learning (Mairal, Bach, Ponce and Sapiro, ICML 2009). Per mini-batch: exact codes Z at
the current atoms; A = sum Z^T Z and B = sum Z^T X are updated; one sweep over the atoms lowers
1/2 tr(V^T A V) - tr(V^T B), the objective with all codes held fixed. Old sums are forgotten in two ways:

- when a mini-batch is seen again its sums are *replaced* (its sparse codes are kept for that, about 45 bytes
  per descriptor), so that in the end A and B are sums over all of X at recent codes, without sampling noise;
- in the first passes they also decay, by (1 - 1/t)^4 at mini-batch t, because the first codes are poor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ddlcn.dictionaries.start import distinct_rows, into_unit_ball, start_atoms, unit_rows
from ddlcn.utils.validation import check_count, check_matrix, check_number, seed_sequence

Array = NDArray[Any]
Codes = tuple[Array, Array, Array]  # CSR: indptr (n + 1,), indices (nnz,), values (nnz,)

# Exponent and duration of the decay. On Extended Yale B descriptors, share of SPAMS's decrease after 5
# passes for 15 / 256 / 512 atoms: no decay 0.997 / 0.981 / 0.975; exponent 2, one pass 1.004 / 0.993 /
# 0.989; 4, three passes 1.008 / 0.998 / 0.995; 8, three passes 1.009 / 1.003 / 1.000, but its first pass
# ends at 0.79 with 512 atoms (4: 0.88), and a large X may see one pass only.
_DECAY = 4.0
_DECAY_PASSES = 3
# Convergence is checked over whole passes of at least this many mini-batches: one step on a small X is too noisy.
_WINDOW = 16
# Atoms per matrix product in the sweep: enough for BLAS, few enough that the sequential part stays in cache.
_SWEEP_BLOCK = 64
# The objective at the start and at the end is evaluated on all of X, or on this many of its rows, drawn once.
_EVALUATION_ROWS = 50_000
# An atom is dead when its use (A_jj) is below this part of the mean use.
_DEAD = 1e-6
# With at least as many atoms as dimensions, a code may end this many times the mean of 1/2 ||x||^2 above its minimum.
# The exact code of a nearly flat patch, whose descriptor is far shorter than l1_radius, then has as many atoms as
# dimensions: a tenth of the descriptors of digits took nearly all the time (128 atoms of 3,380 descriptors: exact 33 s,
# this 0.9 s; 1,024 atoms: 165 and 6 s; 1e-6: 3.1 and 21 s), at objectives within 0.1 % of each other.
_GAP_TOL = 1e-5
# Dead atoms are replaced once per pass, and in long passes after this number of mini-batches.
_DEAD_CHECK = 50


@dataclass(frozen=True)
class DictionaryResult:
    """What `learn_dictionary` returns.

    Attributes
    ----------
    atoms : ndarray (n_atoms, m)
        C-contiguous, of the dtype of X, every row of norm <= 1 (to rounding).
    objective : ndarray (n_windows + 2,)
        mean_i 1/2 ||x_i - a_i V||^2 with exact codes (if n_atoms >= m: within 1e-5 of the mean of
        1/2 ||x_i||^2). First entry: at the start; last entry: at `atoms`; both on all of X or, if X has more
        than 50,000 rows, on the same 50,000 of them. Between: one entry per pass over X (several passes where
        one has fewer than 16 mini-batches), every mini-batch at the atoms it was coded with.
    n_iter : int
        Mini-batches used.
    converged : bool
        Whether it stopped by `tol`, not by `max_iter`.
    """

    atoms: Array
    objective: NDArray[np.float64]
    n_iter: int
    converged: bool


def learn_dictionary(
    X: Any,
    n_atoms: int,
    l1_radius: float = 0.35,
    *,
    batch_size: int = 512,
    max_iter: int = 500,
    tol: float = 1e-3,
    init: Any = None,
    random_state: Any = None,
) -> DictionaryResult:
    """Learn a dictionary that best approximates the descriptors by codes in the l1 ball.

    Parameters
    ----------
    X : array-like (n, m)
        Descriptors, one per row, of any sign and norm. Not changed. Matrix products run in float32.
    n_atoms : int
        Atoms to learn. May exceed n.
    l1_radius : float, default 0.35
        Bound on the l1 norm of every code (0.35: the published setting).
    batch_size : int, default 512
        Descriptors per mini-batch.
    max_iter : int, default 500
        Most mini-batches (500: the published setting).
    tol : float, default 1e-3
        Stop when a pass (or several short ones, see `DictionaryResult.objective`) lowers the objective by
        less than `tol` times what was gained since the start.
    init : array-like (k, m), k <= n_atoms, optional
        Atoms to start from; those with a norm above 1 are scaled to unit norm. Missing rows are filled as below. The
        result is never worse than this start, by `objective`.
    random_state : None, int, numpy SeedSequence, Generator or RandomState
        The same int gives the same result, bit for bit.

    Returns
    -------
    DictionaryResult
        With `.atoms`, `.objective`, `.n_iter`, `.converged`.

    Notes
    -----
    The start consists of distinct non-zero descriptors drawn at random, scaled to unit norm. If there are too few,
    they are repeated with 1% of noise; if all descriptors are zero, random directions are used. An atom that no
    descriptor uses is replaced by a badly reconstructed descriptor.
    """
    X = check_matrix("X", X, "descriptor")
    n_atoms = check_count("n_atoms", n_atoms)
    batch_size = check_count("batch_size", batch_size)
    max_iter = check_count("max_iter", max_iter)
    l1_radius = check_number("l1_radius", l1_radius, above=True)
    tol = check_number("tol", tol)
    if init is not None:
        init = check_matrix("init", init, "atom", X.shape[1])
        if init.shape[0] > n_atoms:
            raise ValueError(f"init has {init.shape[0]} atoms, more than n_atoms={n_atoms}: pass at most n_atoms rows")
    rng = np.random.default_rng(seed_sequence(random_state))
    with threadpool_limits(1, user_api="blas"):
        return learn(X, n_atoms, l1_radius, batch_size, max_iter, tol, init, rng)


def learn(
    X: Array,
    n_atoms: int,
    radius: float,
    batch_size: int,
    max_iter: int,
    tol: float,
    init: Array | None,
    rng: np.random.Generator,
) -> DictionaryResult:
    """`learn_dictionary` on validated arguments; the caller sets the number of BLAS threads."""
    # Data whose squares may overflow float32 are scaled to about 1, and the radius with them: the same
    # problem. A radius beyond 1e-15 or 1e15 in these units makes no difference above rounding.
    exponent = int(np.frexp(max(abs(float(X.max())), abs(float(X.min()))))[1]) - 1
    unit = float(np.ldexp(1.0, exponent)) if abs(exponent) > 16 else 1.0
    problem = _Problem(X, unit, min(max(radius / unit, 1e-15), 1e15))
    V = start_atoms(X, n_atoms, init, rng)
    n = X.shape[0]
    n_parts = max(1, round(n / batch_size))
    order = rng.permutation(n)
    sample = np.sort(order[:_EVALUATION_ROWS])
    if n <= _EVALUATION_ROWS:  # sort X once in the order of the mini-batches: saves a sixth with 15 atoms
        problem = _Problem(problem.rows(order), 1.0, problem.radius)
        order = sample
    if n_atoms >= X.shape[1]:
        problem.gap_tol = _GAP_TOL * problem.energy(sample)
    parts = np.array_split(order, n_parts)
    first, best = problem.objective(V, sample), V.copy()
    history = [first]

    sums = _Sums(n_atoms, X.shape[1], n_parts)
    window = n_parts * -(-_WINDOW // n_parts)
    n_iter, total, converged = 0, 0.0, False
    batches: dict[int, tuple[Array, Array]] = {}  # kept where they are views of X
    for part in _passes(n_parts, rng):
        if part not in batches:
            batches[part] = problem.take(parts[part])
        batch, energies = batches[part] if n <= _EVALUATION_ROWS else batches.pop(part)
        codes, losses = problem.code(V, batch, energies)
        n_iter += 1
        sums.replace(part, batch, codes, n_iter)
        sums.sweep(V)
        total += float(losses.sum())
        if n_iter % min(n_parts, _DEAD_CHECK) == 0:
            _replace_dead(V, sums.dead(), batch, losses)
        if n_iter % window == 0:
            history.append(total * n_parts / (n * window))
            gain = history[-2] - history[-1]
            # The first window's gain is measured from the start, which is no window: not comparable.
            converged = len(history) > 2 and gain <= tol * max(first - history[-1], 0.0)
            total = 0.0
        if converged or n_iter == max_iter:
            break
    last = problem.objective(V, sample)
    if last <= first:
        best = V
    history.append(min(first, last))
    with np.errstate(over="ignore"):  # squares of numbers above 1e154 are infinite
        objective = np.array(history) * unit * unit
    return DictionaryResult(
        atoms=np.ascontiguousarray(into_unit_ball(best.astype(np.float64)), dtype=X.dtype),
        objective=objective,
        n_iter=n_iter,
        converged=converged,
    )


def _passes(n_parts: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield the mini-batches, pass after pass without end, each pass in a new order."""
    while True:
        yield from rng.permutation(n_parts).tolist()


class _Problem:
    """The descriptors in units of `unit`, and their exact codes for given atoms."""

    def __init__(self, X: Array, unit: float, radius: float) -> None:
        self.X, self.unit, self.radius = X, unit, radius
        self.gap_tol = 0.0  # bound on the distance of a code's objective from its minimum

    def rows(self, items: Array) -> NDArray[np.float32]:
        """Some descriptors (k, m) in float32 and units of `unit`; not copied if they are contiguous."""
        contiguous = bool((np.diff(items) == 1).all())
        rows = self.X[items[0] : items[-1] + 1] if contiguous else self.X[items]
        return (rows if self.unit == 1.0 else rows / self.unit).astype(np.float32, copy=False)

    def take(self, items: Array) -> tuple[NDArray[np.float32], Array]:
        """Some descriptors (k, m), and 1/2 ||x||^2 of each (k,)."""
        rows = self.rows(items)
        return rows, 0.5 * np.einsum("ij,ij->i", rows, rows)

    def code(self, V: Array, batch: Array, energies: Array, G: Array | None = None) -> tuple[Codes, Array]:
        """Codes of a batch (k, m) with energies 1/2 ||x||^2 (k,), and 1/2 ||x - a V||^2 of its descriptors (k,)."""
        # Imported here: numba takes a second to import.
        from ddlcn.engines.cpu.l1_ball import code_batch, code_tolerance

        G = V @ V.T if G is None else G
        tol = code_tolerance(V.dtype)
        *codes, losses = code_batch(G, batch @ V.T, energies, min(V.shape), self.radius, tol, self.gap_tol)
        return tuple(codes), losses

    def energy(self, sample: Array) -> float:
        """Mean of 1/2 ||x||^2 over the rows `sample`."""
        return float(self.take(sample)[1].mean(dtype=np.float64))

    def objective(self, V: Array, sample: Array) -> float:
        """Mean of 1/2 ||x - a V||^2 over the rows `sample`."""
        G = V @ V.T
        chunks = np.array_split(sample, -(-sample.size // 2048))  # bounds the memory of X V^T
        return sum(float(self.code(V, *self.take(chunk), G)[1].sum()) for chunk in chunks) / sample.size


class _Sums:
    """A = sum of Z^T Z and B = sum of Z^T X over the mini-batches, each at its latest codes."""

    def __init__(self, n_atoms: int, m: int, n_parts: int) -> None:
        self.A, self.B = np.zeros((n_atoms, n_atoms)), np.zeros((n_atoms, m))
        self.codes: dict[int, Codes] = {}
        self.weight = np.zeros(n_parts)  # of each mini-batch in A and B
        self._floor = 0.0  # atoms with no more on the diagonal of A are unused

    def replace(self, part: int, batch: Array, codes: Codes, t: int) -> None:
        """Replace the old codes of a mini-batch by its new ones; in the first passes, decay the others."""
        from ddlcn.engines.cpu.atom_update import replace_statistics

        decay = 1.0
        if t <= _DECAY_PASSES * self.weight.size:
            decay = (1.0 - 1.0 / t) ** _DECAY
        old = self.codes.get(part, codes)
        replace_statistics(batch, old, float(self.weight[part]), decay, codes, self.A, self.B)
        self.weight *= decay
        self.codes[part], self.weight[part] = codes, 1.0
        self._floor = _DEAD * float(np.trace(self.A)) / len(self.A)

    def dead(self) -> NDArray[np.intp]:
        """Indices of the unused atoms."""
        return np.flatnonzero(np.diagonal(self.A) <= self._floor)

    def sweep(self, V: Array) -> None:
        """One sweep of block coordinate descent over all atoms, V in place."""
        from ddlcn.engines.cpu.atom_update import update_block

        floor = self._floor
        for start in range(0, len(V), _SWEEP_BLOCK):
            block = slice(start, start + _SWEEP_BLOCK)
            R = self.B[block].astype(V.dtype)
            R -= self.A[block].astype(V.dtype) @ V
            update_block(V, R, self.A, start, floor)


def _replace_dead(V: Array, dead: NDArray[np.intp], batch: Array, losses: Array) -> None:
    """Replace dead atoms by the worst reconstructed descriptors of a mini-batch, V in place."""
    if dead.size == 0:
        return
    order = np.argsort(-losses, kind="stable")
    chosen = distinct_rows(batch, order[losses[order] > 0.0], dead.size)
    V[dead[: len(chosen)]] = unit_rows(chosen.astype(np.float64))

"""`learn_dictionary` against SPAMS `trainDL` (mode 0) and scikit-learn: time and objective.

ddlcn and SPAMS solve the same problem, codes in the l1 ball of radius 0.35, from the same start: random descriptors of
norm 1. SPAMS gets as many mini-batches of the same size as `learn_dictionary` may use; what it reaches in fewer is
shown too.

Each bar is set against the SPAMS run that is harder to beat: time against float32, its faster one, and decrease
against float64, its sound one. In float32 `trainDL` breaks down on some starts, every time it is run on them; why is
not known. Measured with 256 atoms and 500 mini-batches, decrease in float32 / float64: 0.0103 / 0.0150 from the start
used here, where float32 had 0.0145 after 100; 0.0093 / 0.0146 from a second start; from a third, float32 is sound.
Against float32 alone the start used here would look like a win of 1.46 times, which it is not.

scikit-learn only has the penalised problem. All dictionaries are judged by one evaluator: the mean of
1/2 ||x - a V||^2 at exact codes in the ball, on the same descriptors, atoms shortened to norm 1 where longer.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rivals import spams
from benchmarks.timing import NOT_INSTALLED, Bar, Row, time_in_turns
from ddlcn import learn_dictionary
from ddlcn.dictionaries import learn_layer1

Array = NDArray[Any]
RADIUS = 0.35
BATCH = int(inspect.signature(learn_dictionary).parameters["batch_size"].default)
MAX_ITER = int(inspect.signature(learn_dictionary).parameters["max_iter"].default)
# SPAMS's number for "codes in the l1 ball".
SPAMS_BALL = 0
# scikit-learn's penalty: at the start its codes then have l1 norms of 0.26 (15 atoms) to 0.42 (256 atoms) on average,
# near the radius of the others.
ALPHA = 0.3
# Descriptors on which the objective is taken.
EVALUATED = 8_000
SHARE_BAR = Bar(">=", 0.98)
TIME_BAR = Bar("<=", 1.0)


def compare_learning(X: Array, n_atoms: int, *, spams_short: int, sklearn_batches: int, repeats: int) -> list[Row]:
    """Rows for one size of dictionary, learned from X (n, m) in float32.

    `spams_short` mini-batches are what SPAMS gets in a second, shorter run; scikit-learn, the slowest, gets
    `sklearn_batches`.
    """
    start = X[np.random.default_rng(1).choice(len(X), n_atoms, replace=False)]
    start = start / np.maximum(np.linalg.norm(start, axis=1, keepdims=True), 1e-6)
    found: dict[str, Array] = {}

    def keep(name: str, learn: Callable[[], Array]) -> Callable[[], None]:
        def work() -> None:
            found[name] = learn()

        return work

    contenders = {
        "ddlcn": keep("ddlcn", lambda: learn_dictionary(X, n_atoms, RADIUS, init=start, random_state=0).atoms),
        "sklearn": keep("sklearn", lambda: learn_with_sklearn(X, start, sklearn_batches)),
    }
    if spams is not None:
        columns = np.asfortranarray(X.T)  # SPAMS's layout; not part of its time
        columns64 = columns.astype(np.float64, order="F")
        for name, data, n_iter in (
            ("SPAMS short", columns, spams_short),
            ("SPAMS", columns, MAX_ITER),
            ("SPAMS64", columns64, MAX_ITER),
        ):
            contenders[name] = keep(name, lambda data=data, n_iter=n_iter: learn_with_spams(data, start, n_iter))
    learn_dictionary(X[: 4 * BATCH], n_atoms, RADIUS, init=start, max_iter=2)  # compiles
    best = time_in_turns(contenders, repeats, warm_up=False)

    sample = X[np.random.default_rng(2).permutation(len(X))[:EVALUATED]]
    before = evaluate(sample, start)
    decrease = {name: before - evaluate(sample, atoms) for name, atoms in found.items()}

    what = f"learn {n_atoms} atoms from {len(X):,}"

    def lower(name: str, label: str, bar: Bar | None = None) -> Row:
        ours = f"{decrease['ddlcn']:.5f}"
        if name not in decrease:
            return Row(f"{what}: decrease", 1, ours, f"{label} {NOT_INSTALLED}", None, bar)
        share = decrease["ddlcn"] / decrease[name]
        return Row(f"{what}: decrease", 1, ours, f"{label} {decrease[name]:.5f}", share, bar)

    def sooner(name: str, label: str, bar: Bar | None = None) -> Row:
        ours = f"{best['ddlcn']:.2f} s"
        if name not in best:
            return Row(f"{what}: time", 1, ours, f"{label} {NOT_INSTALLED}", None, bar)
        return Row(f"{what}: time", 1, ours, f"{label} {best[name]:.2f} s", best["ddlcn"] / best[name], bar)

    full, short = f"{MAX_ITER} batches", f"{spams_short} batches"
    sklearn_label = f"MiniBatchDictionaryLearning, {sklearn_batches} batches"
    return [
        lower("SPAMS64", f"SPAMS trainDL float64, {full}", SHARE_BAR),
        sooner("SPAMS", f"SPAMS trainDL float32, {full}", TIME_BAR),
        lower("SPAMS", f"SPAMS trainDL float32, {full}"),
        sooner("SPAMS64", f"SPAMS trainDL float64, {full}"),
        lower("SPAMS short", f"SPAMS trainDL float32, {short}"),
        sooner("SPAMS short", f"SPAMS trainDL float32, {short}"),
        lower("sklearn", sklearn_label),
        sooner("sklearn", sklearn_label),
    ]


def compare_threads(X: Array, n_classes: int, atoms_per_class: int, repeats: int) -> Row:
    """Layer 1 on two threads against one: one class per thread, X (n, m) cut into `n_classes` parts."""
    parts = np.array_split(X, n_classes)
    contenders = {
        threads: lambda threads=threads: learn_layer1(parts, atoms_per_class, RADIUS, 0, n_jobs=threads)
        for threads in (1, 2)
    }
    best = time_in_turns(contenders, repeats)
    what = f"layer 1, {n_classes} classes of {atoms_per_class} atoms"
    return Row(what, 2, f"{best[2]:.2f} s", f"one thread {best[1]:.2f} s", best[1] / best[2])


def learn_with_spams(columns: Array, start: Array, n_iter: int) -> Array:
    atoms = spams.trainDL(
        columns,
        D=np.asfortranarray(start.T, dtype=columns.dtype),
        lambda1=RADIUS,
        mode=SPAMS_BALL,
        iter=n_iter,
        batchsize=BATCH,
        numThreads=1,
        verbose=False,
    )
    return np.ascontiguousarray(atoms.T)


def learn_with_sklearn(X: Array, start: Array, n_batches: int) -> Array:
    learner = MiniBatchDictionaryLearning(len(start), alpha=ALPHA, dict_init=start, random_state=0, n_jobs=1)
    rows = np.random.default_rng(3).permutation(len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for batch in range(n_batches):
            learner.partial_fit(X[np.take(rows, range(batch * BATCH, (batch + 1) * BATCH), mode="wrap")])
    atoms: Array = learner.components_
    return atoms


def evaluate(X: Array, atoms: Array) -> float:
    """Mean of 1/2 ||x - a V||^2 at exact codes: by SPAMS's own coder in float64 where it is installed, else by ours.

    The two agree to seven digits; the rival's is taken so that nobody is judge in his own cause.
    """
    atoms = atoms / np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1.0)
    if spams is None:
        return float(learn_dictionary(X, len(atoms), RADIUS, init=atoms, max_iter=1).objective[0])
    X, atoms = X.astype(np.float64), atoms.astype(np.float64)
    codes = spams.lasso(
        np.asfortranarray(X.T), np.asfortranarray(atoms.T), lambda1=RADIUS, mode=SPAMS_BALL, numThreads=1
    )
    return float(0.5 * ((X - codes.T @ atoms) ** 2).sum(axis=1).mean())

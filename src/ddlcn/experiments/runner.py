"""A table's runs, one after the other or several at once: what is finished is never made again.

In: an experiment and a results file. Out: rows in that file. Vectors that several baselines see are kept beside the
results file, by what they depend on, and the epochs of joint trainings that are under way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets import load_dataset
from ddlcn.experiments.catalogue import Experiment
from ddlcn.experiments.run import run_settings
from ddlcn.experiments.run_baseline import run_method
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row, Store
from ddlcn.utils.files import open_whole
from ddlcn.utils.threads import count_threads

Array = NDArray[Any]


class Task(NamedTuple):
    """One run."""

    settings: Settings
    seed: int


def plan(experiment: Experiment, store: Store, n_seeds: int | None = None) -> list[Task]:
    """What is left to do, seed by seed, so that a table fills evenly."""
    wanted = {
        Task(cell.settings, seed): None
        for cell in experiment.cells
        for seed in range(cell.seeds if n_seeds is None else n_seeds)
        if not store.is_finished(cell.settings, seed)
    }
    return sorted(wanted, key=lambda task: task.seed)


def carry_out(
    tasks: list[Task],
    store: Store,
    n_jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """Carry out tasks; every row is in the store before it is yielded.

    Parameters
    ----------
    tasks : list of Task
    store : Store
    n_jobs : int
        Tasks at a time, each with its share of the cores. One runs in this process.
    say : function of a line of text
        Told what is being done.
    """
    cache = store.path.with_suffix(".vectors")
    if n_jobs == 1:
        for task in tasks:
            row = _run(task, cache, None, say)
            store.add(row)
            yield row
        return
    threads = max(1, count_threads(None) // n_jobs)
    # Fresh processes: a fork would copy the threads' locks of this one.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_run, task, cache, threads) for task in tasks}
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                row = future.result()
                store.add(row)
                yield row


def _run(task: Task, cache: Path, threads: int | None, say: Callable[[str], None] = lambda _: None) -> Row:
    def tell(what: str) -> None:
        say(f"{task.settings.describe()}, seed {task.seed}: {what}")

    tell("reading data")
    data = _load(task.settings.dataset)
    if task.settings.method == "DDLCN":
        epochs = cache.with_suffix(".epochs") / task.settings.make_key(task.seed)
        return run_settings(data, task.settings, task.seed, threads, tell, epochs)
    return run_method(data, task.settings, task.seed, threads, tell, _Recall(cache))


@lru_cache(maxsize=1)  # the tasks of a seed come data set by data set
def _load(name: str) -> Any:
    return load_dataset(name)


class _Recall:
    """Arrays kept on disk under a name that says all they depend on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, name: str, make: Callable[[], Array]) -> Array:
        path = self._folder / f"{name}.npy"
        with contextlib.suppress(OSError, ValueError):  # not there, or cut off by a full disk: made again
            found: Array = np.load(path)
            return found
        made = make()
        # Keeping it is a convenience, no duty.
        with contextlib.suppress(OSError), open_whole(path, make_folder=True) as file:
            np.save(file, made)
        return made

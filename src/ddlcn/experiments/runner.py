"""A table's runs, one after the other or several at once: what is finished is never made again.

In: an experiment and a results file. Out: rows in that file. Runs that differ in depth only are made together. Layer 1
dictionaries are kept beside the results file, by what they depend on, so that runs with other coders find them; nothing
else is written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn._threads import count_threads
from ddlcn.experiments.catalogue import Experiment
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row, Store

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Runs that share everything but depth."""

    settings: Settings  # depth 1, which does not count
    depths: tuple[int, ...]
    seed: int


def plan(experiment: Experiment, store: Store, n_seeds: int | None = None) -> list[Task]:
    """What is left to do, seed by seed, so that a table fills evenly."""
    wanted: dict[tuple[int, Settings], list[int]] = {}
    for cell in experiment.cells:
        for seed in range(cell.seeds if n_seeds is None else n_seeds):
            if not store.is_finished(cell.settings, seed):
                depths = wanted.setdefault((seed, cell.settings.without_depth()), [])
                if cell.settings.n_layers not in depths:
                    depths.append(cell.settings.n_layers)
    return [
        Task(settings, tuple(sorted(depths)), seed)
        for (seed, settings), depths in sorted(wanted.items(), key=lambda item: item[0][0])
    ]


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
    cache = store.path.with_suffix(".dictionaries")
    if n_jobs == 1:
        for task in tasks:
            for row in _run(task, cache, None, say):
                store.add(row)
                yield row
        return
    threads = max(1, count_threads(None) // n_jobs)
    # Fresh processes: a fork would copy the threads' locks of this one.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_run_all, task, cache, threads) for task in tasks}
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                for row in future.result():
                    store.add(row)
                    yield row


def _run_all(task: Task, cache: Path, threads: int) -> list[Row]:
    return list(_run(task, cache, threads, lambda _: None))


def _run(task: Task, cache: Path, threads: int | None, say: Callable[[str], None]) -> Iterator[Row]:
    def tell(what: str) -> None:
        say(f"{task.settings.describe()}, seed {task.seed}: {what}")

    tell("reading data")
    data = _load(task.settings.dataset)
    recall = _Recall(cache)
    if task.settings.method == "DDLCN":
        from ddlcn.experiments.run import run_depths

        yield from run_depths(data, task.settings, task.depths, task.seed, threads, tell, recall)
        return
    from ddlcn.experiments.others import run_method

    for depth in task.depths:  # only one: depth is no setting of theirs
        yield run_method(data, replace(task.settings, n_layers=depth), task.seed, threads, tell, recall)


@lru_cache(maxsize=1)  # the tasks of a seed come data set by data set
def _load(name: str) -> Any:
    from ddlcn.datasets import load_dataset

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
        with contextlib.suppress(OSError):  # keeping it is a convenience, no duty
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder, suffix=".npy")
            with os.fdopen(handle, "wb") as file:
                np.save(file, made)
            os.replace(temporary, path)
        return made

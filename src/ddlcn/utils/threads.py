"""Work shared among threads: ordered, lazy, one BLAS thread each.

The kernels release the GIL, so plain threads scale. BLAS must not start threads of its own below them: two pools
spinning against each other run slower than one thread.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import chain, islice
from typing import TypeVar

from threadpoolctl import ThreadpoolController

In = TypeVar("In")
Out = TypeVar("Out")


def count_threads(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` asks for: None and -1 mean every core this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0 or not isinstance(n_jobs, int):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@lru_cache(maxsize=1)
def _find_pools(n_modules: int) -> ThreadpoolController:
    """The thread pools of the libraries that are loaded. Looking costs milliseconds, so only after an import."""
    return ThreadpoolController()


class Stopped(Exception):
    """Nobody waits for the result any more: the work outside was interrupted, or has failed."""


# Of a worker thread: events of the calls of `map_threads` that it works for, the outermost first.
_inside = threading.local()


def map_threads(work: Callable[[In], Out], items: Iterable[In], n_jobs: int | None = None) -> Generator[Out]:
    """Yield `work(item)` in the order of `items`, computed by `n_jobs` threads.

    At most two items per thread are under way, so a long or endless `items` never piles up in memory. Calls may be
    nested; when an outer one ends early, those inside raise Stopped before their next item, so that Ctrl-C need not
    wait for long work.
    """
    n_threads = count_threads(n_jobs)
    outside: tuple[threading.Event, ...] = getattr(_inside, "events", ())
    event = threading.Event()

    def work_inside(item: In) -> Out:
        _inside.events = (*outside, event)
        return work(item)

    def check() -> None:
        if any(each.is_set() for each in outside):
            raise Stopped

    with _find_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        items = iter(items)
        first = list(islice(items, 2))
        if n_threads == 1 or len(first) < 2:  # for a single item no thread need be started
            for item in chain(first, items):
                check()
                yield work(item)
            return
        under_way: deque[Future[Out]] = deque()
        with ThreadPoolExecutor(n_threads, thread_name_prefix="ddlcn") as pool:
            try:
                for item in chain(first, items):
                    check()
                    under_way.append(pool.submit(work_inside, item))
                    if len(under_way) >= 2 * n_threads:
                        yield under_way.popleft().result()
                while under_way:
                    yield under_way.popleft().result()
            finally:
                event.set()
                for future in under_way:
                    future.cancel()

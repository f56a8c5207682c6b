"""Work shared among threads: ordered, lazy, one BLAS thread each.

The kernels release the GIL, so plain threads scale. BLAS must not start threads of its own below them: two pools
spinning against each other run slower than one thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

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


def map_threads(work: Callable[[In], Out], items: Iterable[In], n_jobs: int | None = None) -> Iterator[Out]:
    """Yield `work(item)` in the order of `items`, computed by `n_jobs` threads.

    At most two items per thread are under way, so a long or endless `items` never piles up in memory.
    """
    n_threads = count_threads(n_jobs)
    with threadpool_limits(1, user_api="blas"):
        if n_threads == 1:
            yield from map(work, items)
            return
        under_way: deque[Future[Out]] = deque()
        with ThreadPoolExecutor(n_threads, thread_name_prefix="ddlcn") as pool:
            try:
                for item in items:
                    under_way.append(pool.submit(work, item))
                    if len(under_way) >= 2 * n_threads:
                        yield under_way.popleft().result()
                while under_way:
                    yield under_way.popleft().result()
            finally:
                for future in under_way:
                    future.cancel()

"""Threads: ordered, lazy, and one BLAS thread each."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from ddlcn.utils.threads import count_threads, map_threads


@pytest.mark.parametrize("n_jobs", [1, 2, 5, None, -1])
def test_results_come_in_order(n_jobs):
    def work(i):
        time.sleep(0.001 * (7 * i % 5))
        return i * i

    assert list(map_threads(work, range(30), n_jobs)) == [i * i for i in range(30)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_endless_source_is_read_only_a_little_ahead(n_jobs):
    taken = []

    def source():
        for i in itertools.count():
            taken.append(i)
            yield i

    results = map_threads(lambda i: i, source(), n_jobs)
    assert [next(results) for _ in range(10)] == list(range(10))
    results.close()
    assert len(taken) <= 10 + 2 * n_jobs


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_comes_through(n_jobs):
    def work(i):
        if i == 3:
            raise ValueError("three")
        return i

    with pytest.raises(ValueError, match="three"):
        list(map_threads(work, range(10), n_jobs))


def test_blas_has_one_thread_inside():
    def blas_threads(_):
        # numpy's and scipy's own; other tests' rivals (OpenCV, SPAMS) bring libraries that we never call
        ours = [
            pool for pool in threadpool_info() if Path(pool["filepath"]).parent.name in ("numpy.libs", "scipy.libs")
        ]
        return max(pool["num_threads"] for pool in ours)

    import scipy.linalg  # noqa: F401  (loads a BLAS of its own)

    assert set(map_threads(blas_threads, range(4), 2)) == {1}


def test_counting():
    assert count_threads(3) == 3
    assert count_threads(None) == count_threads(-1) >= 1
    assert count_threads(-1000) == 1
    for wrong in (0, 1.5, "two"):
        with pytest.raises(ValueError, match="n_jobs"):
            count_threads(wrong)


def test_when_an_outer_call_fails_those_inside_stop_before_their_next_item():
    """Two long pieces of work side by side: the first fails, and the second must not be waited for to its end."""
    begun, done = threading.Event(), []

    def work(name):
        if name == "fails":
            begun.wait(10)
            raise RuntimeError("failed")
        for i in map_threads(lambda i: time.sleep(0.01) or i, range(1000), n_jobs=1):
            done.append(i)
            begun.set()

    with pytest.raises(RuntimeError, match="failed"):
        list(map_threads(work, ["fails", "goes on"], n_jobs=2))
    assert 0 < len(done) < 100

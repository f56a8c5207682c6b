"""Compilation of the CPU kernels: cached outside the installation, with one notice the first time.

By default numba writes its cache beside the source file, which fails in a read-only installation and litters a shared
one. Ours goes to the user's cache folder; `NUMBA_CACHE_DIR` takes precedence where it is set.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from numba.core import event

from ddlcn.engines.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])

# Inputs are checked, so kernels never get NaN or infinity, and sums may be reordered: both let loops be vectorised.
# `arcp` and `afn` are left out: divisions and square roots stay exact.
FASTMATH = {"nnan", "ninf", "nsz", "contract", "reassoc"}


def _sources_digest() -> str:
    """Digest of every kernel's source: numba detects changes in a kernel's own file only, not in what it calls."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> str:
    """Return the folder for compiled code: the user's cache, or a temporary one if that is not writable."""
    for base in (
        platformdirs.user_cache_dir("ddlcn"),
        os.path.join(tempfile.gettempdir(), f"ddlcn-{os.getuid()}"),
    ):
        folder = Path(base) / f"compiled-{_sources_digest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return ""  # numba then falls back to its own choice


class _Listener(event.Listener):
    """Prints once per process, on standard error, that kernels are being compiled (not when they come from the cache).

    Also sums the compile time. Compiling a kernel may compile others: only the outermost counts.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._announced = False
        self._started: list[float] = []

    def on_start(self, event: Any) -> None:
        self._started.append(time.perf_counter())
        module = event.data["dispatcher"].py_func.__module__
        if self._announced or not module.startswith("ddlcn."):
            return
        self._announced = True
        print(
            "ddlcn: first run on this machine, compiling (up to a minute, once) ...",
            file=sys.stderr,
            flush=True,
        )

    def on_end(self, event: Any) -> None:
        begin = self._started.pop()
        if not self._started:
            self.seconds += time.perf_counter() - begin


_LISTENER = _Listener()
event.register("numba:compile", _LISTENER)  # type: ignore[no-untyped-call]


def clock() -> float:
    """Seconds since an arbitrary moment, without the time spent compiling kernels: what a second run would take."""
    return time.perf_counter() - _LISTENER.seconds


def kernel(function: F) -> F:
    """Decorator: compile `function` with numba on first call, without the GIL, cached across processes."""
    compiled: Any = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or cache_folder()
    try:
        compiled._cache = KernelCache(function)  # what numba's cache=True does, with a cache of its own
    except RuntimeError:
        pass  # no folder can be written: compiled anew in each process
    finally:
        config.CACHE_DIR = before
    return compiled  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Decorator for the small steps of kernels: compiled into their callers, not cached on their own."""
    compiled: Any = numba.njit(forceinline=True, nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def called(function: F) -> F:
    """Decorator for the large steps: compiled once and called, since inlining them only slows the compiler."""
    compiled: Any = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def strict(function: F) -> F:
    """Decorator for steps that must handle NaN and infinity and round as written: IEEE 754, no fast math."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]

"""How the CPU kernels are compiled: cached outside the installation, and with one notice the first time.

numba's own habit is to write its cache beside the source file, which fails or litters in a read-only or shared
installation. Ours goes to the user's cache folder; `NUMBA_CACHE_DIR` still wins where it is set.
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

F = TypeVar("F", bound=Callable[..., Any])

# Kernels never see NaN or infinity (inputs are checked before), and sums may be reordered: both let loops be
# vectorised. `arcp` and `afn` are left out: divisions and square roots stay exact.
FASTMATH = {"nnan", "ninf", "nsz", "contract", "reassoc"}


def _sources_digest() -> str:
    """A digest of every kernel's source: numba notices a change in a kernel's own file only, not in what it calls."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> str:
    """The folder for compiled code: the user's cache, or a temporary one where that cannot be written."""
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
    """Says once per process, on standard error, that kernels are being compiled (not when they come from the cache).

    And adds up the time: a kernel may have others compiled on the way, so only the outermost counts.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._said = False
        self._under_way: list[float] = []

    def on_start(self, event: Any) -> None:
        self._under_way.append(time.perf_counter())
        module = event.data["dispatcher"].py_func.__module__
        if self._said or not module.startswith("ddlcn."):
            return
        self._said = True
        print(
            "ddlcn: first run on this machine, compiling (up to a minute, once) ...",
            file=sys.stderr,
            flush=True,
        )

    def on_end(self, event: Any) -> None:
        begin = self._under_way.pop()
        if not self._under_way:
            self.seconds += time.perf_counter() - begin


_LISTENER = _Listener()
event.register("numba:compile", _LISTENER)  # type: ignore[no-untyped-call]


def clock() -> float:
    """Seconds since some moment, without those in which kernels were compiled: what a second run would take."""
    return time.perf_counter() - _LISTENER.seconds


def kernel(function: F) -> F:
    """Decorator: compile `function` with numba on first call, without the GIL, cached across processes."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or cache_folder()
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return compiled  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Decorator for the small steps that kernels are made of: compiled into their callers, not cached by themselves."""
    compiled: Any = numba.njit(forceinline=True, nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def called(function: F) -> F:
    """Decorator for the large steps: compiled once and called, where inlining them would only slow the compiler."""
    compiled: Any = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def strict(function: F) -> F:
    """Decorator for steps that must see NaN and infinity, and round as they are written: IEEE 754, no shortcuts."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]

"""Maps of images that were seen lately: a training looks at its images several times, and runs the network once.

Bounded in bytes; the oldest go first. Only images that are files are kept: an array has no name to find it by.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

# About 5,000 photographs at the two sizes of the default; more where the machine has memory to spare.
LEAST_BYTES, SHARE = 500_000_000, 12


def _allow_bytes() -> int:
    """A twelfth of the machine's memory, and no less than LEAST_BYTES."""
    try:
        return max(LEAST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE)
    except (AttributeError, OSError, ValueError):
        return LEAST_BYTES


class KeptMaps:
    """Values by key, the least recently used forgotten when all together take more than `max_bytes`."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = _allow_bytes() if max_bytes is None else max_bytes
        self._n_bytes = 0
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """What was put under the key, or None."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value, which knows its `nbytes`."""
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = value
            self._n_bytes += value.nbytes
            while self._n_bytes > self._max_bytes:
                self._n_bytes -= self._kept.popitem(last=False)[1].nbytes

    @contextmanager
    def forget_for_now(self) -> Iterator[None]:
        """Inside, nothing is known of what was kept before: for those who measure time. Afterwards it is again."""
        with self._lock:
            before, self._kept, self._n_bytes = (self._kept, self._n_bytes), OrderedDict(), 0
        try:
            yield
        finally:
            with self._lock:
                since, (self._kept, self._n_bytes) = self._kept, before
            for key, value in since.items():
                self.put(key, value)


def name_file(image: Any) -> Hashable | None:
    """What a file is found by again, its date and size included; None for what is no file."""
    if isinstance(image, str | os.PathLike):
        try:
            state = os.stat(image)
        except OSError:
            return None  # reading it will say so
        return Path(image).absolute(), state.st_mtime_ns, state.st_size
    # A member of an archive is a frozen record of where its bytes lie.
    return image if hasattr(image, "read_bytes") and getattr(type(image), "__hash__", None) else None


# One for the process: folds of a cross-validation see the same images.
KEPT = KeptMaps()

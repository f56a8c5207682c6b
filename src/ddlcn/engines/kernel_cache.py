"""Compiled kernels on disk: one file each, checked before it is used.

numba's own cache has an index and numbered files. Two processes that compile at once may give one number to two
kernels, and half a file, left by a full disk or a dead machine, stops every later run. Here a kernel's file is named
after all that it depends on, holds its own checksum, and is written whole: what cannot be used is compiled again.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from ddlcn.utils.files import write_whole

_DIGEST_BYTES = hashlib.sha256().digest_size


class _Files:
    """What numba asks of its cache files: `load`, `save` and `flush`.

    Parameters
    ----------
    folder : str
    name : str
        Names the kernel, its line and the version of Python.
    stamp : object
        Identity of the source file.
    """

    def __init__(self, folder: str, name: str, stamp: object) -> None:
        self._folder, self._name = Path(folder), name
        self._depends_on = (numba.__version__, stamp)

    def _find(self, key: object) -> Path:
        digest = hashlib.sha256(repr((self._depends_on, key)).encode()).hexdigest()
        return self._folder / f"{self._name}.{digest[:24]}.nbc"

    def load(self, key: object) -> Any:
        """What was saved under the key; None if there is nothing, or it is damaged."""
        try:
            content = self._find(key).read_bytes()
        except OSError:
            return None
        # Before it is unpickled: machine code that is damaged does not fail, it crashes.
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
            return None
        return pickle.loads(content[_DIGEST_BYTES:])

    def save(self, key: object, data: object) -> None:
        """Keep `data` under the key."""
        content = dumps(data)  # type: ignore[no-untyped-call]
        write_whole(self._find(key), hashlib.sha256(content).digest() + content)

    def flush(self) -> None:
        """Forget all that is kept of this kernel."""
        for path in self._folder.glob(f"{self._name}.*.nbc"):
            path.unlink(missing_ok=True)


class KernelCache(FunctionCache):
    """The cache of one kernel; a disk that cannot be written costs time at the next start, and nothing else."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file: Any = _Files(self.cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel; called by numba."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]

"""The tensors of a torch checkpoint, read without torch and without running anything that the file says.

A checkpoint is a pickle, and a pickle may name any function of any package. The unpickler here knows three names: the
ordered dictionary, the function that makes a tensor and the kinds of storage; every other name is refused.

Format (torch before 1.6, as `_use_new_zipfile_serialization=False` still writes it): five pickles one after the other
(a magic number, the protocol, facts on the machine, the dictionary of tensors, the keys of the storages), then every
storage: its number of elements as int64, and the elements.
"""

from __future__ import annotations

import collections
import os
import pickle
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
# A storage's kind, and what one element of it is; what networks are made of, no more.
KINDS = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}


class CheckpointError(ValueError):
    """The file is not a checkpoint of tensors; the message says why."""


class _Tensor(NamedTuple):
    """Where a tensor's elements lie: in which storage, from which element on, with which steps."""

    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """All tensors of a checkpoint by name.

    Raises
    ------
    CheckpointError
        If the file is of another kind, is cut short, or names anything but tensors.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file)
        except CheckpointError as error:
            raise CheckpointError(f"{path} is not a checkpoint that can be read: {error}") from None
        # A damaged pickle makes Python's reader raise errors of nearly every kind.
        except Exception as error:
            raise CheckpointError(f"{path} is not a checkpoint that can be read: {error!r}") from None


def _read(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    storages: dict[str, NDArray[Any]] = {}
    if _load(file, storages) != MAGIC or _load(file, storages) != PROTOCOL:
        raise CheckpointError("it does not begin as one")
    if not _load(file, storages)["little_endian"]:
        raise CheckpointError("it was written by a machine of the other byte order")
    tensors = _load(file, storages)
    for key in _load(file, storages):
        _fill(storages[key], file)
    return {str(name): _view(tensor, storages) for name, tensor in tensors.items() if isinstance(tensor, _Tensor)}


def _load(file: IO[bytes], storages: dict[str, NDArray[Any]]) -> Any:
    """The next pickle. Storages that it names are laid out in `storages`, to be filled later."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) == ("collections", "OrderedDict"):
                return collections.OrderedDict
            if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
                return _make_tensor
            if module == "torch" and name in KINDS:
                return KINDS[name]
            raise CheckpointError(f"it asks for {module}.{name}, and only tensors are allowed")

        def persistent_load(self, what: Any) -> str:
            called, kind, key, _device, n_elements, view = what
            if called != "storage" or view is not None or not isinstance(kind, np.dtype):
                raise CheckpointError(f"it holds {called!r}, and only tensors are allowed")
            key = str(key)
            if key not in storages:
                left = os.fstat(file.fileno()).st_size
                if not 0 <= n_elements * kind.itemsize <= left:
                    raise CheckpointError(f"a tensor of {n_elements} elements does not fit in a file of {left} bytes")
                storages[key] = np.empty(n_elements, kind)
            return key

    return Unpickler(file).load()


def _make_tensor(
    storage: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_of_training: Any
) -> _Tensor:
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _fill(storage: NDArray[Any], file: IO[bytes]) -> None:
    n_elements = int.from_bytes(file.read(8), "little")
    content = file.read(storage.nbytes)
    if n_elements != len(storage) or len(content) != storage.nbytes:
        raise CheckpointError("it is cut short")
    storage[:] = np.frombuffer(content, storage.dtype)


def _view(tensor: _Tensor, storages: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """A tensor as an array; refuses one that reaches beyond its storage."""
    storage = storages[tensor.storage]
    steps = [(n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True)]
    last = tensor.offset + sum(steps) if 0 not in tensor.shape else tensor.offset
    if tensor.offset < 0 or min(steps, default=0) < 0 or (last >= len(storage) and 0 not in tensor.shape):
        raise CheckpointError("a tensor reaches beyond its storage")
    bytes_apart = [step * storage.itemsize for step in tensor.strides]
    return np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, bytes_apart).copy()

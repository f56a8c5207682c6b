"""The packaged network: built once from its weights, checked against a known output, kept in the user's cache.

The cache is a convenience. What cannot be read there is built again, and what cannot be written there is used from
memory; one file holds the network and its checksum, so that no reader finds the one without the other.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from ddlcn.descriptors.pretrained import efficientnet
from ddlcn.descriptors.pretrained.onnx_file import NetworkError
from ddlcn.descriptors.pretrained.runtime import need_package, start_session
from ddlcn.utils.files import write_whole

Array = NDArray[Any]

NAME = efficientnet.NAME
# Counts the ways in which the network was built or is kept: a new one is a new file in the cache.
BUILD = 2
# Colours that rise by 1 from row to row, by 2 and by 3 from column to column, modulo 256, give these five largest of
# the network's 1,000 outputs; computed with torch from the same weights.
KNOWN_SIDE = 224
KNOWN_TOP = ((418, 6.817), (644, 5.922), (885, 5.534), (604, 5.153), (470, 4.846))
_DIGEST_BYTES = hashlib.sha256().digest_size
_OPENING = Lock()


def open_session(sha256: str) -> Any:
    """The session of the packaged network, one per process.

    Parameters
    ----------
    sha256 : str
        The hash of the weights' file.
    """
    with _OPENING:  # lru_cache alone would let every thread of a pool build its own
        return _open_session(sha256)


@lru_cache(maxsize=1)
def _open_session(sha256: str) -> Any:
    return start_session(load_or_build(sha256), NAME)


def load_or_build(sha256: str) -> bytes:
    """The packaged network as ONNX, from the cache; built, checked and kept if it is not there, or is damaged."""
    need_package("onnx")
    path = find_place(sha256)
    with suppress(OSError):
        kept = path.read_bytes()
        content = kept[_DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == kept[:_DIGEST_BYTES]:
            return content
    content = efficientnet.build_efficientnet(efficientnet.find_weights())
    _check_known(content)
    try:
        # Another process may write it at this moment; the last one wins, with the same network.
        write_whole(path, hashlib.sha256(content).digest() + content, make_folder=True)
    except OSError as error:
        warnings.warn(f"{NAME} cannot be kept ({error}): it works, but is built again at every start", stacklevel=2)
    return content


def find_place(sha256: str) -> Path:
    """Where the network is kept: a file of the checksum, 32 bytes, and the ONNX model."""
    return user_cache_path("ddlcn") / "networks" / f"{NAME}-{BUILD}-{sha256[:16]}.bin"


def make_known_image() -> Array:
    """The picture (1, 3, H, W) whose output is known, in colours of 0 to 255."""
    rows, columns = np.mgrid[:KNOWN_SIDE, :KNOWN_SIDE]
    return np.stack([rows % 256, 2 * columns % 256, (3 * columns + rows) % 256])[None].astype(np.float32)


def _check_known(content: bytes) -> None:
    images = (make_known_image() - np.float32(efficientnet.MEAN)) / np.float32(efficientnet.SCALE)
    (logits,) = start_session(content, NAME).run(["logits"], {"images": images})
    for index, value in KNOWN_TOP:
        if abs(logits[0, index] - value) > 1e-2:
            raise NetworkError(
                f"{NAME} was built, but its output {index} on a known picture is {logits[0, index]:.3f} where "
                f"{value:.3f} is right: install the package's weights again, and tell us your onnxruntime version"
            )

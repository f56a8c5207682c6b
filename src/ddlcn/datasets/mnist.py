"""MNIST, read from its original distribution: four gzipped IDX files, 60,000 + 10,000 digits of 28 x 28."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets.root import find_file

Array = NDArray[Any]


def load_mnist() -> tuple[Array, Array, Array, Array]:
    """Training images (60000, 28, 28) uint8, their labels (60000,), test images (10000, 28, 28), their labels."""
    files = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    arrays = [_read_idx(find_file("mnist", name)) for name in files]
    return arrays[0], arrays[1], arrays[2], arrays[3]


def _read_idx(path: Path) -> Array:
    """IDX: two zero bytes, the type (8: unsigned byte), the number of dimensions, each as 4 bytes, then the values."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of bytes: fetch it again from the data set's distribution")
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)

"""Checksums of the contents of a data set, independent of how it is packed.

In: a `Dataset`. Out: one SHA-256 for each part, to compare with those in `catalogue.py`. Every image is read, which
takes most of the time of `ddlcn data verify`.
"""

from __future__ import annotations

import hashlib
import struct
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset
from ddlcn.utils.threads import map_threads


def content_digests(dataset: Dataset, n_jobs: int | None = None) -> dict[str, str]:
    """SHA-256 of the parts of one of the named data sets.

    - MNIST: each of the four files, unpacked.
    - Extended Yale B, Omniglot: names and bytes of the images, class by class, so that labels count too.
    - AR as arrays: names, labels and pixels. As bitmaps: the names alone, and every image is decoded.
    - Caltech: names, widths and heights, and every image is decoded. The same pictures are distributed with
      different JPEG bytes, and decoders differ in the last bit, so neither bytes nor pixels can be compared.

    Parameters
    ----------
    dataset : Dataset
        From `load_dataset`, with one of the names of the catalogue.
    n_jobs : int, optional
        Threads; None means every core.

    Returns
    -------
    digests : dict of str to str
        Part and hexadecimal SHA-256.

    Raises
    ------
    ValueError
        If an image cannot be decoded; the message names the first and the number of others.
    """
    if dataset.name == "mnist":
        return _digest_idx_files(dataset)
    if isinstance(dataset.images, np.ndarray):
        return {"images": _digest_arrays(dataset)}
    if dataset.name in ("yaleb", "omniglot", "omniglot-background"):
        return {"images": _digest_files(dataset, n_jobs)}
    return {"names and sizes": _digest_sizes(dataset, n_jobs)}


def _digest_idx_files(dataset: Dataset) -> dict[str, str]:
    """What `zcat FILE | sha256sum` prints for each file of MNIST."""
    assert dataset.is_test is not None
    images, labels = np.asarray(dataset.images), dataset.labels.astype(np.uint8)
    arrays = [values[part] for part in (~dataset.is_test, dataset.is_test) for values in (images, labels)]
    digests = {}
    for file, array in zip(CATALOGUE["mnist"].files, arrays, strict=True):
        header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        digests[file.removesuffix(".gz")] = hashlib.sha256(header + array.tobytes()).hexdigest()
    return digests


def _digest_arrays(dataset: Dataset) -> str:
    digest = hashlib.sha256("\n".join(dataset.image_names).encode())
    digest.update(dataset.labels.astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(dataset.images).tobytes())
    return digest.hexdigest()


def _digest_files(dataset: Dataset, n_jobs: int | None) -> str:
    def read(item: tuple[str, Any]) -> bytes | Exception:
        try:
            content: bytes = item[1].read_bytes()
        except Exception as error:  # damaged archives make Python's readers raise errors of many kinds
            return error
        return content

    items = list(zip(dataset.image_names, dataset.images, strict=True))
    digest, damaged = hashlib.sha256(), []
    for (name, _), content in zip(items, map_threads(read, items, n_jobs), strict=True):
        if isinstance(content, Exception):
            damaged.append(f"{name} ({content})")
        else:
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    _raise_if_damaged(damaged)
    return digest.hexdigest()


def _digest_sizes(dataset: Dataset, n_jobs: int | None) -> str:
    def measure(image: Any) -> tuple[int, int] | Exception:
        try:
            with Image.open(BytesIO(image.read_bytes())) as picture:
                picture.load()
                return picture.size
        except Exception as error:  # damaged files make PIL's readers raise errors of nearly every kind
            return error

    digest, damaged = hashlib.sha256(), []
    for name, size in zip(dataset.image_names, map_threads(measure, dataset.images, n_jobs), strict=True):
        if isinstance(size, Exception):
            damaged.append(f"{name} ({' '.join(str(size).split())})")
        else:
            digest.update(f"{name} {size[0]} {size[1]}\n".encode())
    _raise_if_damaged(damaged)
    return digest.hexdigest()


def _raise_if_damaged(damaged: list[str]) -> None:
    if damaged:
        more = f", and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
        raise ValueError(f"damaged image {damaged[0]}{more}")

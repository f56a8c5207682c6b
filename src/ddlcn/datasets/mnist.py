"""MNIST, read from its original distribution: four IDX files, gzipped or not, 60,000 + 10,000 digits of 28 x 28."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets.archive import explain_damage
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset, check_counts
from ddlcn.datasets.root import data_root, missing

Array = NDArray[Any]


def open_mnist(root: Path | None = None) -> Dataset:
    """MNIST, in memory (55 MB), with the distribution's test images marked.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `mnist/`; None means `data_root()`.

    Returns
    -------
    dataset : Dataset
        Images (70000, 28, 28) uint8, the 60,000 for training first; image names such as "train/00000".
    """
    record = CATALOGUE["mnist"]
    root = data_root() if root is None else root
    train_images, train_labels, test_images, test_labels = _read_all(root)
    dataset = Dataset(
        name=record.name,
        title=record.title,
        images=np.concatenate([train_images, test_images]),
        labels=np.concatenate([train_labels, test_labels]).astype(np.intp),
        class_names=tuple("0123456789"),
        image_names=tuple(
            f"{part}/{i:05d}"
            for part, n in (("train", len(train_images)), ("t10k", len(test_images)))
            for i in range(n)
        ),
        is_test=np.arange(len(train_images) + len(test_images)) >= len(train_images),
    )
    return check_counts(dataset, record, root / record.folder)


def load_mnist() -> tuple[Array, Array, Array, Array]:
    """Training images (60000, 28, 28) uint8, their labels (60000,), test images (10000, 28, 28), their labels."""
    arrays = _read_all(data_root())
    return arrays[0], arrays[1], arrays[2], arrays[3]


def _read_all(root: Path) -> list[Array]:
    """Images and labels for training, then images and labels for testing."""
    record = CATALOGUE["mnist"]
    arrays = []
    for file in record.files:
        path = root / record.folder / file
        if not path.exists():
            path = path.with_suffix("")
        if not path.exists():
            raise missing(record, root, file)
        arrays.append(_read_idx(path))
    for i in (0, 2):
        images, labels = arrays[i], arrays[i + 1]
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"{root / record.folder}: {record.files[i]} has shape {images.shape} and {record.files[i + 1]} "
                f"{labels.shape} where (n, 28, 28) and (n,) are needed: get them again"
            )
    return arrays


def _read_idx(path: Path) -> Array:
    """IDX: two zero bytes, the type (8: unsigned byte), the number of dimensions, each as 4 bytes, then the values."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        with explain_damage(path):
            content = gzip.decompress(content)
    if len(content) < 4 or content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise ValueError(f"{path} is not an IDX file of bytes: get it again")
    shape = tuple(int(n) for n in np.frombuffer(content, ">i4", count=content[3], offset=4))
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape))
    if values.size != np.prod(shape, dtype=np.int64):
        raise ValueError(f"{path} is truncated or damaged ({values.size:,} values for shape {shape}): get it again")
    return values.reshape(shape)

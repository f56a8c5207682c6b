"""Every data set by its name, and any folder of folders by its path."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from ddlcn.datasets.ar import open_ar
from ddlcn.datasets.caltech import open_caltech101, open_caltech256
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset
from ddlcn.datasets.folder import load_folder
from ddlcn.datasets.mnist import open_mnist
from ddlcn.datasets.omniglot import open_omniglot, open_omniglot_background
from ddlcn.datasets.yaleb import open_yaleb

LOADERS: dict[str, Callable[[Path | None], Dataset]] = {
    "yaleb": open_yaleb,
    "yaleb-excluded": partial(open_yaleb, leave_out="worst lit"),
    "yaleb-lit": partial(open_yaleb, leave_out="darkest"),
    "ar": open_ar,
    "caltech101": open_caltech101,
    "caltech102": partial(open_caltech101, background=True),
    "caltech256": open_caltech256,
    "mnist": open_mnist,
    "omniglot": open_omniglot,
    "omniglot-background": open_omniglot_background,
}


def load_dataset(name: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> Dataset:
    """Open a data set: counts are checked, images are read later.

    Parameters
    ----------
    name : str or path
        "yaleb", "yaleb-excluded", "yaleb-lit", "ar", "caltech101", "caltech102", "caltech256", "mnist", "omniglot"
        or "omniglot-background"; or a folder with one sub-folder per class (write "./mnist" for a folder with the name
        of a data set).
    root : path, optional
        Folder of the named data sets; None means `data_root()`.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the message explains how to get it.
    ValueError
        If the name is unknown, an archive is damaged, or images are missing.
    """
    if isinstance(name, str) and name in LOADERS:
        return LOADERS[name](None if root is None else Path(root))
    if Path(name).is_dir():
        return _open_folder(Path(name))
    raise ValueError(
        f"unknown data set {os.fspath(name)!r}: choose one of {', '.join(CATALOGUE)}, or pass a folder that holds "
        f"one sub-folder per class"
    )


def _open_folder(path: Path) -> Dataset:
    """A user's pictures, `<class>/*.jpg`, as a data set."""
    pictures = load_folder(path)
    title = path.resolve().name or str(path)
    class_names, labels = np.unique(pictures.labels, return_inverse=True)
    stats = [picture.stat() for picture in pictures.paths]
    # Names alone would not show that a picture was replaced by another of the same name.
    stamp = sha256(repr([(stat.st_size, stat.st_mtime_ns) for stat in stats]).encode()).hexdigest()
    return Dataset(
        name=title,
        title=title,
        images=pictures.paths,
        labels=labels.astype(np.intp),
        class_names=tuple(str(class_name) for class_name in class_names),
        image_names=tuple(picture.relative_to(path).as_posix() for picture in pictures.paths),
        stamp=stamp,
    )

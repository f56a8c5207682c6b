"""A user's pictures: a folder with one sub-folder per class.

In: `photos/<class>/*.jpg`. Out: the paths and their labels, every file checked to be readable. Pixels are read later,
in batches, from the paths.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets.thumbnails import make_thumbnail
from ddlcn.images import ImageReadError
from ddlcn.images.formats import find_suffix, list_suffixes
from ddlcn.utils.progress import track
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """The pictures of a folder, as `load_folder` returns them.

    Parameters
    ----------
    paths : list of Path
        Readable images, sorted by class, then by path.
    labels : ndarray of shape (n,), str
        Class of each image: the name of its folder.
    class_names : list of str
        Classes that have at least one image, sorted.
    skipped : list of (Path, str)
        Files that cannot be read, and why; class folders without an image that can be.
    thumbnails : ndarray of shape (n, pixels), float32
        Of `datasets.thumbnails`, to find near-duplicates by.
    """

    paths: list[Path]
    labels: NDArray[np.str_]
    class_names: list[str]
    skipped: list[tuple[Path, str]]
    thumbnails: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"ImageFolder({len(self)} images, {len(self.class_names)} classes, {len(self.skipped)} skipped)"


def load_folder(
    folder: str | os.PathLike[str], on_error: str = "raise", n_jobs: int | None = None, verbose: int = 0
) -> ImageFolder:
    """List the pictures of a folder that has one sub-folder per class.

    Hidden files and folders, files of other kinds, and pictures outside class folders are ignored.
    Folders inside a class folder are searched too.

    Parameters
    ----------
    folder : path
        Contains `<class>/*.jpg` (or any other image format that PIL reads; upper or lower case).
    on_error : {"raise", "skip"}, default "raise"
        For a file that cannot be read: raise, or list it in `.skipped` and warn.
    n_jobs : int, optional
        Threads that check the files; None means every core.
    verbose : int, default 0
        1 shows progress.

    Returns
    -------
    data : ImageFolder
        `.paths`, `.labels`, `.class_names`, `.skipped`; `fit(data.paths, data.labels)` is the next step.

    Raises
    ------
    ImageReadError
        If a file cannot be read and `on_error="raise"`; the message names it.
    ValueError
        If the folder is missing, or contains no class folders or no images.
    """
    check_choice("on_error", on_error, ("raise", "skip"))
    root = Path(folder)
    if not root.is_dir():
        problem = "is a file" if root.exists() else "does not exist"
        raise ValueError(f"folder {str(root)!r} {problem}: pass a folder that holds one sub-folder per class")
    class_folders = sorted(path for path in root.iterdir() if path.is_dir() and not _is_hidden(path.name))
    if not class_folders:
        raise ValueError(
            f"folder {str(root)!r} holds no class folders: put the images of each class into a sub-folder "
            f"named after it, such as {root.name or 'photos'}/cat/1.jpg"
        )
    found = [(path, class_folder.name) for class_folder in class_folders for path in walk_images(class_folder)]

    data = check_files(found, n_jobs, on_error, verbose > 0)
    skipped, class_names = data.skipped, data.class_names
    if not data.paths:
        why = f"none of its {len(skipped)} images can be read" if skipped else "no image in any class folder"
        raise ValueError(f"folder {str(root)!r}: {why}; pass a folder with <class>/*.jpg, *.png, ...")
    if skipped:
        warnings.warn(
            f"skipped {len(skipped)} of {len(found)} files that cannot be read; the first: {skipped[0][1]}",
            stacklevel=2,
        )
    empty = [path for path in class_folders if path.name not in class_names]
    if empty:
        warnings.warn(
            f"left out {len(empty)} class folders without a readable image; the first: {empty[0].name!r}",
            stacklevel=2,
        )
        data.skipped.extend((path, f"class folder {path.name!r} holds no image that can be read") for path in empty)
    return data


def check_files(
    found: Sequence[tuple[Path, str]], n_jobs: int | None, on_error: str = "skip", show: bool = False
) -> ImageFolder:
    """Decode files of known labels: those that can be read, and the others with the reason."""
    paths: list[Path] = []
    labels: list[str] = []
    thumbnails: list[NDArray[np.float32]] = []
    skipped: list[tuple[Path, str]] = []
    checked = track(map_threads(_try_to_read, found, n_jobs), len(found), "reading pictures", show)
    for (path, label), outcome in zip(found, checked, strict=True):
        if not isinstance(outcome, ImageReadError):
            paths.append(path)
            labels.append(label)
            thumbnails.append(outcome)
        elif on_error == "raise":
            raise outcome
        else:
            skipped.append((path, str(outcome)))
    stacked = np.stack(thumbnails) if thumbnails else np.empty((0, 0), np.float32)
    return ImageFolder(paths, np.array(labels), sorted(set(labels)), skipped, stacked)


def walk_images(class_folder: Path) -> Iterator[Path]:
    """Yield the image files below a class folder, in sorted order."""
    suffixes = list_suffixes()
    for parent, folders, files in os.walk(class_folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(files):
            if not _is_hidden(name) and find_suffix(name) in suffixes:
                yield Path(parent, name)


def _is_hidden(name: str) -> bool:
    # "__MACOSX" comes from zip files made on a Mac.
    return name.startswith(".") or name == "__MACOSX"


def _try_to_read(item: tuple[Path, Any]) -> NDArray[np.float32] | ImageReadError:
    try:
        return make_thumbnail(item[0])
    except ImageReadError as error:
        return error

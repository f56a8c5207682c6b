"""Images named on the command line: files, folders, patterns, or "-" for a list on standard input."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from ddlcn.datasets.folder import walk_images


def find_images(arguments: Iterable[str], listed: Iterable[str] = ()) -> Iterator[Path]:
    """The images that the arguments name, in order; folders are searched in sorted order.

    Parameters
    ----------
    arguments : iterable of str
        A file (not checked to be an image), a folder, a pattern such as "in/*.jpg", or "-".
    listed : iterable of str
        The lines for "-": one path each; empty ones are ignored.

    Raises
    ------
    FileNotFoundError
        If an argument matches no file.
    """
    arguments = list(arguments)
    for argument in arguments:  # before the first image is read: a mistake in the last argument must not cost them all
        if argument != "-" and next(_find(argument), None) is None:
            what = "holds no image" if Path(argument).is_dir() else "matches no file or folder"
            raise FileNotFoundError(f"{argument!r} {what}")
    return chain.from_iterable(_list(listed) if argument == "-" else _find(argument) for argument in arguments)


def _list(lines: Iterable[str]) -> Iterator[Path]:
    return (Path(line.strip()) for line in lines if line.strip())


def _find(argument: str) -> Iterator[Path]:
    """The images of one argument."""
    path = Path(argument)
    if path.is_dir():
        yield from walk_images(path)
    elif path.exists():
        yield path
    else:  # shells expand patterns, except on Windows and in quotes
        yield from (Path(match) for match in sorted(glob.glob(argument, recursive=True)))

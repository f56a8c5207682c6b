"""What a person types to name images: files, folders, patterns, or "-" for a list on standard input."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from ddlcn.datasets.folder import walk_images


def find_images(arguments: Iterable[str], listed: Iterable[str] = ()) -> Iterator[Path]:
    """The images that arguments name, in their order; folders are searched, in sorted order.

    Parameters
    ----------
    arguments : iterable of str
        A file (whether it is an image is found out when it is read), a folder, a pattern such as "in/*.jpg", or "-".
    listed : iterable of str
        The lines that "-" stands for: one path each; empty ones are passed over.

    Raises
    ------
    FileNotFoundError
        If an argument names nothing.
    """
    for argument in arguments:
        if argument == "-":
            yield from (Path(line.strip()) for line in listed if line.strip())
            continue
        path = Path(argument)
        if path.is_dir():
            yield from _not_empty(walk_images(path), f"folder {argument!r} holds no image")
        elif path.exists():
            yield path
        else:  # a shell expands patterns itself, except on Windows and in quotes
            matches = (Path(match) for match in sorted(glob.glob(argument, recursive=True)))
            yield from _not_empty(matches, f"{argument!r} is no file, no folder, and no pattern that matches any")


def _not_empty(paths: Iterable[Path], complaint: str) -> Iterator[Path]:
    found = False
    for path in paths:
        found = True
        yield path
    if not found:
        raise FileNotFoundError(complaint)

"""Images named on the command line: files, folders, patterns, or "-" for a list on standard input."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from ddlcn.datasets.folder import walk_images


def find_images(arguments: Iterable[str], listed: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the images that the arguments name, in order; folders are searched in sorted order.

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
    for argument in arguments:
        if argument == "-":
            yield from (Path(line.strip()) for line in listed if line.strip())
            continue
        path = Path(argument)
        if path.is_dir():
            yield from _require_some(walk_images(path), f"folder {argument!r} holds no image")
        elif path.exists():
            yield path
        else:  # shells expand patterns, except on Windows and in quotes
            matches = (Path(match) for match in sorted(glob.glob(argument, recursive=True)))
            yield from _require_some(matches, f"{argument!r} is no file, no folder, and no pattern that matches any")


def _require_some(paths: Iterable[Path], message: str) -> Iterator[Path]:
    found = False
    for path in paths:
        found = True
        yield path
    if not found:
        raise FileNotFoundError(message)

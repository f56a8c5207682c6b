"""The folder of data sets: the environment variable DDLCN_DATA, else a per-user cache."""

from __future__ import annotations

import os
from pathlib import Path

from ddlcn.datasets.catalogue import Record


def data_root() -> Path:
    """Return the folder that contains a folder for each data set."""
    named = os.environ.get("DDLCN_DATA")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("ddlcn")) / "data"


def find_source(record: Record, root: Path | None = None, part: str | None = None) -> Path:
    """Return the folder or archive of a data set under `root`; raises an error that explains how to get it.

    If both a folder and an archive are present, the folder is used. Of a data set in several archives, `part` is the
    name of one without its suffix.
    """
    root = data_root() if root is None else root
    for file in record.files:
        path = root / record.folder / file
        if path.exists() and part in (None, path.stem):
            return path
    raise missing(record, root, part)


def missing(record: Record, root: Path, file: str | None = None) -> FileNotFoundError:
    """Make the error for a data set, or one file of it, that is missing."""
    missing_name = record.title if file is None else f"{record.folder}/{file}"
    remedy = record.how_to_get.removesuffix(".")
    if record.downloads:
        remedy = f"run {remedy}"
    return FileNotFoundError(
        f"{missing_name} is not under {root}: set the environment variable DDLCN_DATA to the folder that holds "
        f"{record.folder}/, or get it. {remedy[0].upper()}{remedy[1:]}"
    )

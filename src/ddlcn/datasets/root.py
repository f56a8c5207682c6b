"""Where data sets lie: the folder named by the environment variable DDLCN_DATA, else a per-user cache."""

from __future__ import annotations

import os
from pathlib import Path

from ddlcn.datasets.catalogue import Record


def data_root() -> Path:
    """The folder under which each data set has a folder of its own."""
    named = os.environ.get("DDLCN_DATA")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("ddlcn")) / "data"


def find_source(record: Record, root: Path | None = None) -> Path:
    """The folder or archive of a data set under `root`, or an error that says how to get it.

    Where the set lies there twice, as folder and as archive, the folder is taken: it was unpacked to be used.
    """
    root = data_root() if root is None else root
    for file in record.files:
        path = root / record.folder / file
        if path.exists():
            return path
    raise missing(record, root)


def missing(record: Record, root: Path, file: str | None = None) -> FileNotFoundError:
    """The error for a data set, or one file of it, that is not there."""
    what = record.title if file is None else f"{record.folder}/{file}"
    how = record.how_to_get.removesuffix(".")
    if record.downloads:
        how = f"run {how}"
    return FileNotFoundError(
        f"{what} is not under {root}: set the environment variable DDLCN_DATA to the folder that holds "
        f"{record.folder}/, or get it. {how[0].upper()}{how[1:]}"
    )

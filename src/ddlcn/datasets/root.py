"""Where data sets lie: the folder named by the environment variable DDLCN_DATA, else a per-user cache."""

from __future__ import annotations

import os
from pathlib import Path


def data_root() -> Path:
    """The folder under which each data set has a folder of its own."""
    named = os.environ.get("DDLCN_DATA")
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("ddlcn")) / "data"


def find_file(*parts: str) -> Path:
    """A data set's file under `data_root()`, or an error that says what is missing and how to point to it."""
    path = data_root().joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(
            f"{'/'.join(parts)} is not under {data_root()}: put the data set there, "
            f"or set the environment variable DDLCN_DATA to the folder that holds it"
        )
    return path

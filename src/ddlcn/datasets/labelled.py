"""Labelled pictures: a folder of folders, or a CSV table of paths and labels."""

from __future__ import annotations

import csv
import os
import warnings
from pathlib import Path

from ddlcn.datasets.folder import ImageFolder, check_files, load_folder


def load_labelled(source: str | os.PathLike[str], n_jobs: int | None = None, verbose: int = 0) -> ImageFolder:
    """Load the readable pictures of a folder with one sub-folder per class, or of a CSV table.

    Parameters
    ----------
    source : path
        A folder as `load_folder` takes it, or a file with two columns: the path of a picture (relative to the table,
        or absolute) and its label. A first row that names no existing picture is a heading; if it contains "path"
        and "label", these columns are read.
    n_jobs : int, optional
        Threads that check the files.
    verbose : int, default 0
        1 shows progress.

    Returns
    -------
    data : ImageFolder
        Sorted by class, then by path; unreadable files are in `.skipped`.
    """
    path = Path(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that files were skipped: they are in `.skipped`
        if path.is_file():
            return _load_table(path, n_jobs, verbose)
        return load_folder(path, on_error="skip", n_jobs=n_jobs, verbose=verbose)


def _load_table(path: Path, n_jobs: int | None, verbose: int) -> ImageFolder:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV table of paths and labels ({error}): pass one, or a folder") from None
    if not rows:
        raise ValueError(f"{path} is empty: it should have a row per picture, path,label")
    heading = [cell.strip().lower() for cell in rows[0]]
    path_column, label_column = 0, 1
    if "path" in heading and "label" in heading:
        path_column, label_column = heading.index("path"), heading.index("label")
        rows = rows[1:]
    elif not (path.parent / rows[0][0].strip()).is_file():
        rows = rows[1:]
    for number, row in enumerate(rows, start=1):
        if len(row) <= max(path_column, label_column) or not row[label_column].strip():
            raise ValueError(f"{path}: picture {number} ({','.join(row)!r}) has no label: write path,label")
    found = sorted((row[label_column].strip(), path.parent / row[path_column].strip()) for row in rows)
    data = check_files([(file, label) for label, file in found], n_jobs, show=verbose > 0)
    if not data.paths:
        raise ValueError(f"{path}: none of its {len(rows)} pictures can be read: paths are relative to the table")
    return data

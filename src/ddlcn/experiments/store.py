"""Finished runs, one row each, in one SQLite file; and as lines of text that can be committed and read again.

A row is written in one transaction when its run is finished, so a process killed at any moment loses only the run it
was in. Nothing else is ever changed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ddlcn.experiments.settings import Settings

# Raised whenever the meaning of a column changes.
FORMAT = 1
_COLUMNS = "key, settings, seed, result"
_TYPES = "key TEXT PRIMARY KEY, settings TEXT, seed INTEGER, result TEXT"


@dataclass(frozen=True)
class Row:
    """One finished run.

    Attributes
    ----------
    settings : Settings
    seed : int
    accuracy, mean_over_classes : float
        In [0, 1]; NaN-free, or None for a run that measures something else.
    mistakes : list of [true class, predicted class, count]
        The confusion matrix without its diagonal.
    class_totals : list of int
        Test images per class.
    seconds_per_image, seconds_to_classify : float
        Per test image, one thread, decoding excluded: the whole pipeline, and the classifier alone.
    fit_seconds : float
    peak_memory_mb : float
    n_train : int
    note : str
        Where the settings asked for what there is not.
    errors : list of float
        Relative reconstruction error of each layer, for `measure="approximation"`.
    class_names : list of str
    data : str
        Identity of the data set.
    versions, machine, finished : str
    """

    settings: Settings
    seed: int
    accuracy: float | None = None
    mean_over_classes: float | None = None
    mistakes: list[list[int]] = field(default_factory=list)
    class_totals: list[int] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)
    seconds_per_image: float | None = None
    seconds_to_classify: float | None = None
    fit_seconds: float | None = None
    peak_memory_mb: float | None = None
    n_train: int = 0
    note: str = ""
    errors: list[float] = field(default_factory=list)
    data: str = ""
    versions: str = ""
    machine: str = ""
    finished: str = ""

    def to_json(self) -> str:
        """One line of text."""
        return json.dumps({**asdict(self), "settings": self.settings.to_table()}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Row:
        """The inverse of `to_json`."""
        values: dict[str, Any] = json.loads(text)
        values["settings"] = Settings.from_table(values["settings"])
        return cls(**values)


class Store:
    """The results file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60.0)
            # In this order: another sweep may be making the file, and where its table shows, so does its version.
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        except (sqlite3.DatabaseError, OSError) as error:
            raise ValueError(f"{self.path} cannot be used as a results file: {error}; name another") from error
        if tables and version != FORMAT:
            raise ValueError(
                f"{self.path} was written in format {version} and this version reads format {FORMAT}: "
                f"name another file, or use the version that wrote it; nothing was changed"
            )
        if not tables:
            with self._write() as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({_TYPES})")
                connection.execute(f"PRAGMA user_version = {FORMAT}")

    def add(self, row: Row) -> None:
        """Write one finished run; one that is there already stays."""
        settings = json.dumps(row.settings.to_table(), sort_keys=True)
        values = (row.settings.make_key(row.seed), settings, row.seed, row.to_json())
        with self._write() as connection:
            connection.execute(f"INSERT OR IGNORE INTO runs ({_COLUMNS}) VALUES (?, ?, ?, ?)", values)

    def is_finished(self, settings: Settings, seed: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM runs WHERE key = ?", (settings.make_key(seed),))
        return found.fetchone() is not None

    def rows(self) -> Iterator[Row]:
        """All rows, in the order of their keys."""
        for (text,) in self._connection.execute("SELECT result FROM runs ORDER BY key"):
            yield Row.from_json(text)

    def read_lines(self, path: str | os.PathLike[str]) -> None:
        """Take in the rows of a text export, if there is one."""
        if Path(path).exists():
            for row in read_rows(path):
                self.add(row)

    def write_lines(self, path: str | os.PathLike[str]) -> None:
        """Write all rows but those of a quick look as a text export."""
        write_lines((row for row in self.rows() if not row.settings.quick), path)

    def close(self) -> None:
        self._connection.close()

    def _write(self) -> _Transaction:
        return _Transaction(self._connection, self.path)


class _Transaction:
    """A transaction whose failure names the file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            if error is None:
                self._connection.commit()
            else:
                self._connection.rollback()
        except sqlite3.Error as failure:
            error = failure
        if isinstance(error, sqlite3.Error):
            raise OSError(
                f"cannot write to {self._path}: {error}; what was finished before is safe, make room and start again"
            ) from error


def write_lines(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Rows as lines of text, sorted, so that a difference between two versions shows what is new. Returns how many.

    The names of a data set's classes stand in the first of its rows only: `read_rows` gives them to the others.
    """
    lines, told = [], set()
    for row in sorted(rows, key=lambda row: (row.settings.dataset, row.settings.make_key(row.seed))):
        lines.append((replace(row, class_names=[]) if row.data in told else row).to_json())
        told.add(row.data)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_suffix(".new")
    new.write_text("".join(f"{line}\n" for line in lines))
    os.replace(new, target)
    return len(lines)


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Rows of a results file (SQLite), or of its export as lines of text (.jsonl)."""
    source = Path(path)
    if not source.exists():
        raise ValueError(f"{source} does not exist: run `ddlcn reproduce` first, or name the file with the results")
    if source.suffix != ".jsonl":
        store = Store(source)
        rows = list(store.rows())
        store.close()
        return rows
    rows = []
    for number, line in enumerate(source.read_text().splitlines(), start=1):
        try:
            rows.append(Row.from_json(line))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{source}, line {number}, is not a row of results of this version: {error}") from error
    names = {row.data: row.class_names for row in rows if row.class_names}
    return [replace(row, class_names=names.get(row.data, [])) for row in rows]

"""Finished runs, one row each, in one SQLite file; exported as lines of text that can be committed and read back.

A row is written in one transaction when its run is finished, so a process killed at any moment loses only the run it
was in. Nothing else is ever changed.

Lines of text are in a `.jsonl` file, the same compressed (`.jsonl.gz`), or a folder with one compressed file per data
set (`docs/results`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ddlcn.experiments.settings import Settings
from ddlcn.utils.files import write_whole

# Raised whenever the meaning of a column changes. Format 1 wrote some settings at their default and left out others, so
# its keys differ; and it had these other names. A file in format 1 is converted when it is opened.
FORMAT = 2
_RENAMED = {"tangents": "first_order", "mean_over_classes": "balanced_accuracy"}
_COLUMNS = "key, settings, seed, result"
_TYPES = "key TEXT PRIMARY KEY, settings TEXT, seed INTEGER, result TEXT"


@dataclass(frozen=True)
class Row:
    """One finished run.

    Attributes
    ----------
    settings : Settings
    seed : int
    accuracy, balanced_accuracy : float
        In [0, 1]; None for a run that measures something else.
    mistakes : list of [true class, predicted class, count]
        The confusion matrix without its diagonal.
    class_totals : list of int
        Test images per class.
    seconds_per_image, seconds_to_code, seconds_to_classify : float
        Per test image, one thread, decoding excluded: the whole pipeline; that without the descriptors, of our own
        method; and the classifier alone.
    fit_seconds : float
    peak_memory_mb : float
    n_train : int
    note : str
        Where the settings asked for more than the data have.
    errors : list of float
        Relative reconstruction error of each layer, for `measure="approximation"`.
    layers : list of dicts
        What each layer is like, for `measure="layers"` (`experiments.layers`).
    epochs : list of [classification error, reconstruction error]
        Of joint training; empty where the dictionaries stayed frozen.
    atoms : list of [before, after]
        Of joint training, layer by layer: some atoms.
    class_names : list of str
    data : str
        Identity of the data set.
    versions, machine, finished : str
    """

    settings: Settings
    seed: int
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    mistakes: list[list[int]] = field(default_factory=list)
    class_totals: list[int] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)
    seconds_per_image: float | None = None
    seconds_to_code: float | None = None
    seconds_to_classify: float | None = None
    fit_seconds: float | None = None
    peak_memory_mb: float | None = None
    n_train: int = 0
    note: str = ""
    errors: list[float] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[list[float]] = field(default_factory=list)
    atoms: list[list[list[list[float]]]] = field(default_factory=list)
    data: str = ""
    versions: str = ""
    machine: str = ""
    finished: str = ""

    def to_json(self) -> str:
        """One line of text, without what is empty or unknown."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, [], "")}
        return json.dumps({**values, "settings": self.settings.to_table()}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Row:
        """The inverse of `to_json`."""
        values: dict[str, Any] = json.loads(text)
        values["settings"] = Settings.from_table(values["settings"])
        return cls(**values)

    def sort_key(self) -> tuple[str, str, int, int]:
        """Data set, settings, seed, depth: rows that differ in depth only stand together, for they are much alike."""
        table = replace(self.settings, n_layers=1).to_table()
        return self.settings.dataset, json.dumps(table, sort_keys=True), self.seed, self.settings.n_layers


class Store:
    """The results file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60.0)
            # In this order: another process may be creating the file, and once its table is visible, so is its version.
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        except (sqlite3.DatabaseError, OSError) as error:
            raise ValueError(f"{self.path} cannot be used as a results file: {error}; name another") from error
        if tables and version == 1:
            self._convert()
        elif tables and version != FORMAT:
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
        with self._write() as connection:
            self._insert(connection, row)

    def is_finished(self, settings: Settings, seed: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM runs WHERE key = ?", (settings.make_key(seed),))
        return found.fetchone() is not None

    def rows(self) -> Iterator[Row]:
        """All rows, in the order of their keys."""
        for (text,) in self._connection.execute("SELECT result FROM runs ORDER BY key"):
            yield Row.from_json(text)

    def read_lines(self, path: str | os.PathLike[str]) -> None:
        """Take in the rows of a text export, if there is one."""
        if not _is_text(Path(path)):
            raise ValueError(f"{path} cannot hold rows as text: name a .jsonl or .jsonl.gz file, or a folder")
        if Path(path).exists():
            for row in read_rows(path):
                self.add(row)

    def write_lines(self, path: str | os.PathLike[str]) -> None:
        """Write all rows except quick runs as a text export."""
        write_lines((row for row in self.rows() if not row.settings.quick), path)

    def close(self) -> None:
        self._connection.close()

    def _convert(self) -> None:
        """From format 1 to format 2, all rows or none."""
        with self._write() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != 1:
                return  # another sweep was quicker
            found = connection.execute("SELECT result FROM runs").fetchall()
            connection.execute("DELETE FROM runs")
            for (text,) in found:
                try:
                    row = _convert_row(text)
                except (ValueError, TypeError, KeyError) as error:
                    raise ValueError(
                        f"{self.path} cannot be converted from format 1 to {FORMAT}: {error}; nothing was changed"
                    ) from error
                self._insert(connection, row)
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    @staticmethod
    def _insert(connection: sqlite3.Connection, row: Row) -> None:
        settings = json.dumps(row.settings.to_table(), sort_keys=True)
        values = (row.settings.make_key(row.seed), settings, row.seed, row.to_json())
        connection.execute(f"INSERT OR IGNORE INTO runs ({_COLUMNS}) VALUES (?, ?, ?, ?)", values)

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
                f"cannot write to {self._path}: {error}; finished runs are safe; free some space and start again"
            ) from error


def _convert_row(text: str) -> Row:
    """A row as format 1 wrote it."""
    values = json.loads(text)
    for table in (values, values["settings"]):
        for old, new in _RENAMED.items():
            if old in table:
                table[new] = table.pop(old)
    return Row.from_json(json.dumps(values))


def write_lines(rows: Iterable[Row], path: str | os.PathLike[str]) -> int:
    """Write rows as sorted lines of text, so that a diff shows what is new; returns their number.

    Parameters
    ----------
    rows : iterable of Row
    path : path
        A `.jsonl` file, a `.jsonl.gz` file, or a folder, which gets one `<dataset>.jsonl.gz` per data set. In a folder,
        files of other data sets stay as they are.
    """
    target = Path(path)
    if not _is_text(target):
        raise ValueError(f"{target} cannot hold rows as text: name a .jsonl or .jsonl.gz file, or a folder")
    files: dict[Path, list[Row]] = defaultdict(list)
    ordered = sorted(rows, key=Row.sort_key)
    if _is_folder(target):
        for row in ordered:  # a data set may be a path
            files[target / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', row.settings.dataset)}.jsonl.gz"].append(row)
    else:
        files[target] = ordered
    for file, its_rows in files.items():
        _write_file(its_rows, file)
    return len(ordered)


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Rows of a results file (SQLite), or of its text export: a `.jsonl` or `.jsonl.gz` file, or a folder of those."""
    source = Path(path)
    if not source.exists():
        raise ValueError(f"{source} does not exist: run `ddlcn reproduce` first, or name the file with the results")
    if _is_folder(source):
        files = sorted(file for file in source.iterdir() if file.name.endswith((".jsonl", ".jsonl.gz")))
        if not files:
            raise ValueError(f"{source} has no .jsonl or .jsonl.gz file in it: name the folder with the results")
        return [row for file in files for row in _read_file(file)]
    if _is_text(source):
        return _read_file(source)
    store = Store(source)
    rows = list(store.rows())
    store.close()
    return rows


def _is_folder(path: Path) -> bool:
    return path.is_dir() or (not path.exists() and not path.suffix)


def _is_text(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".jsonl.gz")) or _is_folder(path)


def _write_file(rows: list[Row], target: Path) -> None:
    """The names of a data set's classes stand in the first of its rows only: `_read_file` gives them to the others."""
    lines, told = [], set()
    for row in rows:
        lines.append((replace(row, class_names=[]) if row.data in told else row).to_json())
        if row.class_names:
            told.add(row.data)
    content = "".join(f"{line}\n" for line in lines).encode()
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # equal rows, equal bytes
    write_whole(target, content, make_folder=True)


def _read_file(source: Path) -> list[Row]:
    try:
        content = source.read_bytes()
        lines = (gzip.decompress(content) if source.suffix == ".gz" else content).decode().splitlines()
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{source} is damaged, or is not what its name says: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(Row.from_json(line))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{source}, line {number}, is not a row of results of this version: {error}") from error
    names = {row.data: row.class_names for row in rows if row.class_names}
    return [replace(row, class_names=names.get(row.data, [])) for row in rows]

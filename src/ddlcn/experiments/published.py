"""The numbers that the paper prints, from one file: the one source of every comparison.

A number is named by its place, "table, row, column": "III, DDLCN-2 (1-1), Included".
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

# The file, among those of the experiments.
FILE = "published.toml"
# The column that holds milliseconds per test image instead of an accuracy.
TIME = "Time (ms)"


@dataclass(frozen=True)
class PublishedNumber:
    """One number of a table.

    Attributes
    ----------
    value : float
        Per cent; milliseconds in a column of times.
    sd : float, optional
        The paper's ±.
    table, row, column : str
        Its place; "" for a number that a user's own experiment states.
    is_own : bool
        Whether the row is the paper's own method.
    note : str
        What is doubtful about it.
    not_run : str
        Why nothing of ours stands beside it.
    """

    value: float
    sd: float | None = None
    table: str = ""
    row: str = ""
    column: str = ""
    is_own: bool = False
    note: str = ""
    not_run: str = ""

    @property
    def name(self) -> str:
        return ", ".join((self.table, self.row, self.column)) if self.table else ""

    @property
    def is_time(self) -> bool:
        return self.column == TIME

    def show(self) -> str:
        """The number, with its deviation if the paper has it."""
        return f"{self.value:.2f}" + ("" if self.sd is None else f" ± {self.sd:.2f}")


@cache
def load_published() -> dict[str, PublishedNumber]:
    """All numbers of all tables by name, in the paper's order."""
    numbers = [number for table in _read_file()["table"] for row in table["row"] for number in _read_row(table, row)]
    return {number.name: number for number in numbers}


def list_tables() -> list[tuple[str, str]]:
    """Number and subject of every table."""
    return [(table["number"], table["what"]) for table in _read_file()["table"]]


def list_claims() -> list[tuple[str, str]]:
    """Name and words of everything that the paper claims and that can be tested."""
    return [(claim["id"], claim["says"]) for claim in _read_file()["claim"]]


def find_published(stated: Any) -> PublishedNumber | None:
    """What an experiment states as `published`: the name of a number, a number of its own, or nothing."""
    if stated is None:
        return None
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return PublishedNumber(stated)
    if not isinstance(stated, str):
        raise ValueError(f"published must be a place in the paper or a number in per cent; got {stated!r}")
    numbers = load_published()
    if stated not in numbers:
        close = get_close_matches(stated, numbers, 3, 0.0)
        raise ValueError(f"the paper has no number {stated!r}; did you mean {' or '.join(map(repr, close))}?")
    return numbers[stated]


@cache
def _read_file() -> dict[str, Any]:
    return tomllib.loads(resources.files("ddlcn.experiments").joinpath("paper", FILE).read_text())


def _read_row(table: dict[str, Any], row: dict[str, Any]) -> list[PublishedNumber]:
    label = row["method"] if "(" in row["method"] or "setting" not in row else f"{row['method']} ({row['setting']})"
    return [
        PublishedNumber(
            value,
            row.get("sd", {}).get(column),
            table["number"],
            label,
            column,
            row.get("ddlcn", False),
            row.get("note", ""),
            row.get("not_run", ""),
        )
        for column, value in row["values"].items()
    ]

"""Times and the table of ratios.

Contenders take turns (A B A B ...), so that a slow spell of the machine falls on all of them, and the best time of each
counts: noise only ever adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

NOT_INSTALLED = "not installed"


def time_in_turns(contenders: Mapping[str, Callable[[], Any]], repeats: int, warm_up: bool = True) -> dict[str, float]:
    """Best wall time in seconds of each contender.

    Parameters
    ----------
    contenders : mapping from names to functions without arguments
    repeats : int
        Rounds; each contender runs once a round.
    warm_up : bool
        Run each once, untimed, before: the first call may compile or load something.
    """
    if warm_up:
        for work in contenders.values():
            work()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@dataclass(frozen=True)
class Bar:
    """What a ratio must be: at least, or at most, `value`."""

    sign: str  # ">=" or "<="
    value: float

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.value if self.sign == ">=" else ratio <= self.value

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, ours, the other, and their ratio with the bar it must meet.

    A row without a ratio or without a bar is for information.
    """

    what: str
    threads: int
    ours: str
    other: str = ""
    ratio: float | None = None
    bar: Bar | None = None

    @property
    def verdict(self) -> str:
        if self.bar is None or self.ratio is None:
            return ""
        return "ok" if self.bar.is_met(self.ratio) else "SHORT"


def count_short(rows: Sequence[Row]) -> int:
    """Rows that miss their bar."""
    return sum(row.verdict == "SHORT" for row in rows)


def make_table(title: str, rows: Sequence[Row]) -> Table:
    """The rows as a rich table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("measured")
    table.add_column("threads", justify="right")
    table.add_column("ddlcn", justify="right")
    table.add_column("against", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("bar", justify="right")
    table.add_column("")
    for row in rows:
        colour = {"ok": "green", "SHORT": "red"}.get(row.verdict, "")
        table.add_row(
            row.what,
            str(row.threads),
            row.ours,
            row.other,
            "" if row.ratio is None else format_ratio(row.ratio),
            "" if row.bar is None else str(row.bar),
            f"[{colour}]{row.verdict}[/]" if colour else "",
        )
    return table


def format_ratio(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.3f}"


def format_rate(per_second: float, unit: str) -> str:
    """Such as "207k codes/s"."""
    if per_second >= 100_000:
        return f"{per_second / 1000:.0f}k {unit}/s"
    if per_second >= 1000:
        return f"{per_second / 1000:.1f}k {unit}/s"
    return f"{per_second:.0f} {unit}/s"

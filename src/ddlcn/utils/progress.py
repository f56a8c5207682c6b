"""Progress of long work on standard error: a bar, on a terminal only and only when asked for, or a line of text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def say(text: str) -> None:
    """One line."""
    print(f"ddlcn: {text}", file=sys.stderr, flush=True)


def track(items: Iterable[Item], total: int, what: str, show: bool) -> Iterator[Item]:
    """Yield `items`, drawing a bar with the time left while they are consumed.

    In a pipe or a log the bar would be noise, so there one line says what begins.
    """
    if not show:
        yield from items
        return
    if not sys.stderr.isatty():
        say(f"{what} ({total})")
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    yield from rich_track(items, description=what, total=total, console=Console(stderr=True), transient=True)

"""What several commands print alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ddlcn.evaluation import Findings


def print_confusions(found: Findings) -> None:
    """The pairs of classes that are confused most, a line each."""
    for own, taken_for, times in found.list_confusions():
        typer.echo(f"  {own} taken for {taken_for}: {times} of {int((found.truth == own).sum())}")

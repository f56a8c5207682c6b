"""Output that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ddlcn.model_selection.metrics import TestResult


def print_confusions(found: TestResult) -> None:
    """Print the most confused pairs of classes, one line each."""
    for true, predicted, times in found.list_confusions():
        typer.echo(f"  {true} predicted as {predicted}: {times} of {int((found.y_true == true).sum())}")

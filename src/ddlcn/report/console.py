"""The tables that `ddlcn reproduce` prints: the same cells and numbers as on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddlcn.experiments.catalogue import Experiment
from ddlcn.experiments.store import Row
from ddlcn.report.approximation import read_errors
from ddlcn.report.layers import read_layers
from ddlcn.report.results import CellResult, fill_grid, group_by_settings
from ddlcn.report.timing import describe_times
from ddlcn.report.writing import show_difference, show_number

if TYPE_CHECKING:
    from rich.console import Console


def print_experiments(experiments: Sequence[Experiment], console: Console) -> None:
    """Print the experiments and the data that they need."""
    from rich.table import Table

    table = Table("name", "what", "data", "cells", "runs")
    for each in experiments:
        runs = sum(cell.seeds for cell in each.cells)
        table.add_row(each.name, each.title, ", ".join(each.dataset_names), str(len(each.cells)), str(runs))
    console.print(table)


def print_experiment(experiment: Experiment, rows: Sequence[Row], console: Console) -> None:
    """Print published, ours and the difference, cell by cell."""
    from rich.table import Table

    grid = fill_grid(experiment, group_by_settings(rows))
    table = Table(title=experiment.title, caption="per cent over all test images, mean and deviation over seeds")
    for heading in ("row", "column", "rule", "published", "ours", "over classes", "difference", "aim", "ms", "seeds"):
        table.add_column(heading, justify="left" if heading in ("row", "column", "rule") else "right")
    for result in grid.results:
        table.add_row(*_show(result))
    if grid.results:
        console.print(table)
    sentences = [each.sentence for each in read_errors(grid)] + [each.sentence for each in read_layers(grid)]
    for sentence in (*sentences, *describe_times(grid)):
        console.print(sentence)
    for note in grid.footnotes:
        console.print(f"note: {note}")


def _show(result: CellResult) -> tuple[str, ...]:
    cell = result.cell
    over = " over classes" if cell.over == "classes" else ""
    return (
        cell.row,
        cell.column,
        cell.settings.rule,
        "" if cell.published is None else cell.published.show(),
        result.state if result.over_images is None else result.over_images.show(),
        "" if result.over_classes is None else result.over_classes.show(),
        "" if result.difference is None else show_difference(result.difference),
        "" if cell.bar is None else f">= {cell.bar:g}{over} {result.bar_verdict}".rstrip(),
        show_number(result.ms_per_image),
        f"{len(result.rows)} of {cell.seeds}",
    )

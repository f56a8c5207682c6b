"""Rows and experiments in, means and deviations per cell out; and the table that `ddlcn reproduce` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.store import Row

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Summary:
    """A cell's accuracies in per cent: mean and standard deviation over its seeds."""

    rows: tuple[Row, ...]

    @property
    def accuracy(self) -> float | None:
        """Mean over seeds of the accuracy over all test images."""
        values = [row.accuracy for row in self.rows if row.accuracy is not None]
        return 100.0 * float(np.mean(values)) if values else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds; None for fewer than two."""
        values = [row.accuracy for row in self.rows if row.accuracy is not None]
        return 100.0 * float(np.std(values, ddof=1)) if len(values) > 1 else None

    @property
    def mean_over_classes(self) -> float | None:
        """Mean over seeds of the mean over classes."""
        values = [row.mean_over_classes for row in self.rows if row.mean_over_classes is not None]
        return 100.0 * float(np.mean(values)) if values else None


def summarise(cell: Cell, rows: Sequence[Row]) -> Summary:
    """What the rows say about a cell."""
    return Summary(tuple(sorted((r for r in rows if r.settings == cell.settings), key=lambda row: row.seed)))


def print_experiments(experiments: Sequence[Experiment], console: Console) -> None:
    """The experiments that there are, with what they need."""
    from rich.table import Table

    table = Table("name", "what", "data", "cells", "runs")
    for each in experiments:
        runs = sum(cell.seeds for cell in each.cells)
        table.add_row(each.name, each.title, ", ".join(each.dataset_names), str(len(each.cells)), str(runs))
    console.print(table)


def print_experiment(experiment: Experiment, rows: Sequence[Row], console: Console) -> None:
    """Published, ours, the difference, cell by cell."""
    from rich.table import Table

    table = Table(title=experiment.title, caption="per cent over all test images, mean and deviation over seeds")
    for heading in ("row", "column", "rule", "published", "ours", "over classes", "difference", "aim", "seeds"):
        table.add_column(heading, justify="left" if heading in ("row", "column", "rule") else "right")
    for cell in experiment.cells:
        found = summarise(cell, rows)
        published = "" if cell.published is None else f"{cell.published:.2f}"
        aim = "" if cell.bar is None else f">= {cell.bar:g}"
        place = (cell.row, cell.column, cell.settings.rule, published)
        errors = [row.errors for row in found.rows if row.errors]
        if errors:
            layers = ", ".join(f"{value:.4f}" for value in np.mean(errors, axis=0))
            table.add_row(*place, f"error by layer {layers}", "", "", aim, f"{len(found.rows)}")
        elif found.accuracy is None:
            table.add_row(*place, "not run", "", "", aim, f"0 of {cell.seeds}")
        else:
            ours = f"{found.accuracy:.2f}" + ("" if found.deviation is None else f" ± {found.deviation:.2f}")
            difference = "" if cell.published is None else f"{found.accuracy - cell.published:+.2f}"
            classes = f"{found.mean_over_classes:.2f}"
            table.add_row(*place, ours, classes, difference, aim, f"{len(found.rows)} of {cell.seeds}")
    console.print(table)
    notes = [row.note for cell in experiment.cells for row in summarise(cell, rows).rows if row.note]
    for note in dict.fromkeys(notes):
        console.print(f"note: {note}")

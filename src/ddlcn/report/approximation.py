"""Reconstruction error by depth, which according to the paper falls: as measured, and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ddlcn.experiments.catalogue import Cell
from ddlcn.report.results import CellResult, Grid
from ddlcn.report.writing import Spread, describe

# Errors that differ by less than this share of the first count as equal.
_EQUAL = 1e-3


@dataclass(frozen=True)
class ErrorLine:
    """Relative reconstruction error of each layer, over seeds."""

    label: str
    errors: tuple[Spread, ...]  # layer 1 first; empty: not run
    seeds: str
    sentence: str


def read_errors(grid: Grid) -> list[ErrorLine]:
    """One line for each cell that measures approximation."""
    own = [result for result in grid.by_layer if result.cell.settings.measure == "approximation"]
    several = len({result.cell.column for result in own}) > 1
    return [_read(result, several) for result in own]


def _read(result: CellResult, name_column: bool) -> ErrorLine:
    label = label_cell(result.cell, name_column)
    depth = max((len(row.errors) for row in result.rows), default=0)
    spreads = [Spread.of([row.errors[i] for row in result.rows if len(row.errors) > i]) for i in range(depth)]
    errors = tuple(spread for spread in spreads if spread is not None)
    return ErrorLine(
        label, errors, f"{len(result.rows)} of {result.cell.seeds} seeds", f"{label}: {describe_errors(errors)}"
    )


def label_cell(cell: Cell, name_column: bool) -> str:
    """What a cell is called in a list: its row, and its column where there are several."""
    parts = (cell.row, cell.column if name_column or not cell.row else "")
    return ", ".join(filter(None, parts)) or f"{cell.settings.dataset} {describe(cell.settings)}"


def describe_errors(errors: tuple[Spread, ...]) -> str:
    """How the error changes with depth, in words."""
    if not errors:
        return "not run."
    means = [error.mean for error in errors]
    if len(means) == 1:
        return f"one layer, relative error {means[0]:.3f}."
    slack = _EQUAL * max(abs(means[0]), 1e-12)
    steps = [after - before for before, after in pairwise(means)]
    ends = f"from {means[0]:.3f} at layer 1 to {means[-1]:.3f} at layer {len(means)}"
    if all(abs(step) <= slack for step in steps):
        return f"the error stays the same ({means[0]:.3f}) at every depth."
    if all(step <= slack for step in steps):
        return f"the error falls, {ends}."
    if all(step >= -slack for step in steps):
        return f"the error rises, {ends}."
    return f"the error neither falls nor rises steadily: it goes {ends}, with a turn on the way."

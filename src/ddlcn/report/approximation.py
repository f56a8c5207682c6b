"""Reconstruction error by depth, which according to the paper falls: as measured, and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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
    several = len({result.cell.column for result in grid.approximations}) > 1
    return [_read(result, several) for result in grid.approximations]


def _read(result: CellResult, name_column: bool) -> ErrorLine:
    settings = result.cell.settings
    parts = (result.cell.row, result.cell.column if name_column or not result.cell.row else "")
    label = ", ".join(part for part in parts if part)
    label = label or f"{settings.dataset} {describe(settings)}"
    depth = max((len(row.errors) for row in result.rows), default=0)
    spreads = [Spread.of([row.errors[i] for row in result.rows if len(row.errors) > i]) for i in range(depth)]
    errors = tuple(spread for spread in spreads if spread is not None)
    return ErrorLine(
        label, errors, f"{len(result.rows)} of {result.cell.seeds} seeds", f"{label}: {describe_errors(errors)}"
    )


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

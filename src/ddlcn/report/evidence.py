"""What the paper's claims are tested on, and what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ddlcn.report.comparisons import Comparison, DepthLine, compare_named
from ddlcn.report.published import NumberLine
from ddlcn.report.results import CellResult, Grid

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
Line = tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """What claims are tested on."""

    grids: Mapping[str, Grid]  # by the experiment's name
    numbers: Mapping[str, NumberLine]  # the paper's, by name
    depths: Sequence[DepthLine]

    def compare(self, experiment: str, a: str, b: str) -> list[Comparison]:
        """The lines of a comparison that an experiment names, those with a seed in common."""
        if experiment not in self.grids:
            return []
        named = {(left, right): lines for left, right, lines in compare_named(self.grids[experiment])}
        return [line for line in named.get((a, b), []) if line.paired is not None]

    def find(self, experiment: str) -> list[CellResult]:
        """The cells of an experiment that were run."""
        grid = self.grids.get(experiment)
        return [] if grid is None else [result for result in grid.results if result.accuracy is not None]


class Finding(NamedTuple):
    """What the rows say of a claim: a verdict, a sentence, and a table."""

    verdict: str
    sentence: str
    head: Line
    lines: tuple[Line, ...]


def judge(n_true: int, n: int) -> str:
    """A verdict from how many of n tests came out as the claim has it."""
    return HOLDS if n_true == n else IN_PART if n_true else FAILS

"""Who wins when: many methods on several data sets, accuracy against images per class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ddlcn.report.comparisons import OUTCOMES, pair
from ddlcn.report.results import CellResult, Grid

# The number of best other methods that are highlighted in a panel, besides ours.
N_BEST = 4


@dataclass(frozen=True)
class Standing:
    """One method on one data set."""

    method: str
    points: dict[int, CellResult]  # by images per class

    @property
    def is_ours(self) -> bool:
        return self.method.lower().startswith("ddlcn")

    @property
    def last(self) -> CellResult | None:
        """Its result with the most images per class."""
        run = [n for n, result in self.points.items() if result.accuracy is not None]
        return self.points[max(run)] if run else None

    @property
    def score(self) -> tuple[int, float]:
        """Sort key: the most images run, then the accuracy with these."""
        run = {n: result.accuracy.mean for n, result in self.points.items() if result.accuracy is not None}
        return (max(run), run[max(run)]) if run else (0, 0.0)

    def find_count(self, accuracy: float) -> float | None:
        """With how many images per class it has this accuracy, between two numbers that were run; None if outside."""
        run = sorted((n, result.accuracy.mean) for n, result in self.points.items() if result.accuracy is not None)
        for (n, below), (m, above) in pairwise(run):
            if below <= accuracy <= above and above > below:
                share = (accuracy - below) / (above - below)
                return float(n * (m / n) ** share)
        return None


@dataclass(frozen=True)
class Panel:
    """One data set: methods, the best first."""

    dataset: str
    counts: tuple[int, ...]  # images per class
    standings: tuple[Standing, ...]

    @property
    def prominent(self) -> tuple[Standing, ...]:
        """Ours, by name, so that each has one colour in all panels, and the best of the others."""
        others = [standing for standing in self.standings if not standing.is_ours and standing.last is not None]
        ours = [standing for standing in self.standings if standing.is_ours and standing.last is not None]
        return (*sorted(ours, key=lambda standing: standing.method), *others[:N_BEST])

    def find_best(self, count: int, ours: bool | None = None) -> Standing | None:
        """The most accurate method with `count` images per class: of all, of `ours` only, or of the others only."""
        run = [s for s in self.standings if count in s.points and s.points[count].accuracy is not None]
        run = [s for s in run if ours is None or s.is_ours == ours]
        return max(run, key=lambda s: s.points[count].accuracy.mean, default=None)  # type: ignore[union-attr]

    def compare_best(self, count: int) -> str:
        """Our best method against the best other, seed by seed: a key of OUTCOMES, or "" if untested."""
        ours, other = self.find_best(count, ours=True), self.find_best(count, ours=False)
        if ours is None or other is None:
            return ""
        left, right = other.points[count], ours.points[count]
        paired = pair(left.rows, right.rows, left.cell.over)
        return "" if paired is None else paired.outcome


def read_panels(grid: Grid) -> list[Panel]:
    """The panels of a contest; data sets in the order of the experiment. Methods without any run are left out."""
    by_set: dict[str, dict[str, dict[int, CellResult]]] = {}
    for result in grid.results:
        points = by_set.setdefault(result.cell.settings.dataset, {}).setdefault(result.cell.column, {})
        points[result.cell.settings.train_per_class or 0] = result
    return [_rank(dataset, methods) for dataset, methods in by_set.items()]


def _rank(dataset: str, methods: dict[str, dict[int, CellResult]]) -> Panel:
    standings = [Standing(method, points) for method, points in methods.items()]
    run = [standing for standing in standings if any(result.is_run for result in standing.points.values())]
    ranked = sorted(run, key=lambda standing: standing.score, reverse=True)
    counts = sorted({n for standing in ranked for n in standing.points})
    return Panel(dataset, tuple(counts), tuple(ranked))


def conclude(panels: Sequence[Panel]) -> list[str]:
    """The best method by number of images, and ours tested against the best other; a line for each data set."""
    sentences = []
    for panel in panels:
        best = ((count, panel.find_best(count)) for count in panel.counts)
        methods = _gather((count, standing.method) for count, standing in best if standing is not None)
        if not methods:
            continue
        parts = [f"{method} with {counts}" for method, counts in methods.items()]
        text = f"{panel.dataset}: most accurate is {'; '.join(parts)} images per class."
        outcomes = _gather((count, panel.compare_best(count)) for count in panel.counts)
        parts = [f"{words} with {outcomes[outcome]}" for outcome, words in OUTCOMES.items() if outcome in outcomes]
        if parts:
            text += f" The best of ours against the best other, in pairs over seeds: {'; '.join(parts)}."
        sentences.append(text)
    return sentences


def _gather(pairs: Iterable[tuple[int, str]]) -> dict[str, str]:
    """{name: "1, 2, 5"}, names in order of appearance."""
    found: dict[str, list[str]] = {}
    for count, name in pairs:
        found.setdefault(name, []).append(str(count))
    return {name: ", ".join(counts) for name, counts in found.items()}

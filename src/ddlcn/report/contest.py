"""Who wins when: many methods on several data sets, accuracy against images per class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddlcn.report.comparisons import pair
from ddlcn.report.results import CellResult, Grid

# Lines that stand out in a panel, besides ours: so many of the others, the best.
N_BEST = 4
# How our place is put in words.
_PLACES = {"higher": "higher", "level": "no difference can be seen", "lower": "lower"}


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
        """Its result with the most images that it was run with."""
        run = [n for n, result in self.points.items() if result.judged is not None]
        return self.points[max(run)] if run else None

    @property
    def score(self) -> tuple[int, float]:
        """To rank by: most images first, then accuracy there."""
        run = {n: result.judged.mean for n, result in self.points.items() if result.judged is not None}
        return (max(run), run[max(run)]) if run else (0, 0.0)


@dataclass(frozen=True)
class Panel:
    """One data set: methods, the best first."""

    dataset: str
    counts: tuple[int, ...]  # images per class
    standings: tuple[Standing, ...]

    @property
    def prominent(self) -> tuple[Standing, ...]:
        """Ours, and the best of the others."""
        others = [standing for standing in self.standings if not standing.is_ours and standing.last is not None]
        ours = [standing for standing in self.standings if standing.is_ours and standing.last is not None]
        return (*ours, *others[:N_BEST])

    def find_winner(self, count: int, ours: bool | None = None) -> Standing | None:
        """The most accurate method with so many images per class: of all, of `ours` only, or of the others only."""
        there = [s for s in self.standings if count in s.points and s.points[count].judged is not None]
        there = [s for s in there if ours is None or s.is_ours == ours]
        return max(there, key=lambda s: s.points[count].judged.mean, default=None)  # type: ignore[union-attr]

    def find_place(self, count: int) -> str:
        """Our best method against the best other, seed by seed: "higher", "lower", "level", or "" if untested."""
        ours, other = self.find_winner(count, ours=True), self.find_winner(count, ours=False)
        if ours is None or other is None:
            return ""
        left, right = other.points[count], ours.points[count]
        paired = pair(left.rows, right.rows, left.cell.over)
        if paired is None or paired.difference.n < 2:
            return ""
        if not paired.is_seen:
            return "level"
        return "higher" if paired.difference.mean > 0 else "lower"


def read_panels(grid: Grid) -> list[Panel]:
    """The panels of a contest; data sets in the order of the experiment. Methods without any run are left out."""
    by_set: dict[str, dict[str, dict[int, CellResult]]] = {}
    for result in grid.results:
        own = by_set.setdefault(result.cell.settings.dataset, {}).setdefault(result.cell.column, {})
        own[result.cell.settings.train_per_class or 0] = result
    return [_rank(dataset, methods) for dataset, methods in by_set.items()]


def _rank(dataset: str, methods: dict[str, dict[int, CellResult]]) -> Panel:
    standings = [Standing(method, points) for method, points in methods.items()]
    run = [standing for standing in standings if any(result.is_run for result in standing.points.values())]
    ranked = sorted(run, key=lambda standing: standing.score, reverse=True)
    counts = sorted({n for standing in ranked for n in standing.points})
    return Panel(dataset, tuple(counts), tuple(ranked))


def conclude(panels: Sequence[Panel]) -> list[str]:
    """Who wins with how many images, and whether ours can be told from the best other; a line for each data set."""
    sentences = []
    for panel in panels:
        winners = ((count, panel.find_winner(count)) for count in panel.counts)
        wins = _gather((count, winner.method) for count, winner in winners if winner is not None)
        if not wins:
            continue
        parts = [f"{method} with {counts}" for method, counts in wins.items()]
        text = f"{panel.dataset}: most accurate is {'; '.join(parts)} images per class."
        places = _gather((count, panel.find_place(count)) for count in panel.counts)
        parts = [f"{_PLACES[place]} with {places[place]}" for place in _PLACES if place in places]
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

"""Two settings against each other, in pairs: the same seed is the same split, so the difference is taken seed by seed.

A difference is claimed only if every test made is significant. Seeds redraw from the same images, so the differences
are not fully independent and p is somewhat too small; the page states this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report.results import CellResult, Grid
from ddlcn.report.writing import Spread, count, describe, natural_key, show_difference, show_p, show_setting

LEVEL = 0.05
# The outcomes of a paired test, b against a, in words.
OUTCOMES = {"higher": "higher", "level": "no difference can be seen", "lower": "lower"}
# With fewer pairs the signed-rank test cannot reach p < 0.05.
_PAIRS_FOR_RANKS = 6


@dataclass(frozen=True)
class Paired:
    """Differences b - a over the seeds that both have, in points."""

    a: Spread
    b: Spread
    difference: Spread
    a_classes: Spread | None
    b_classes: Spread | None
    tests: tuple[tuple[str, float], ...]  # name, p
    identical: bool

    @property
    def outcome(self) -> str:
        """A key of OUTCOMES; "" with a single seed, which cannot be tested."""
        if self.difference.n < 2:
            return ""
        if not (self.tests and all(p < LEVEL for _, p in self.tests)):
            return "level"
        return "higher" if self.difference.mean > 0 else "lower"

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        n = self.difference.n
        if not self.outcome:
            return "one seed: cannot be tested"
        if self.identical:
            return f"equal on every one of {n} seeds"
        ps = ", ".join(f"{name} {show_p(p)}" for name, p in self.tests)
        return f"{OUTCOMES[self.outcome]} (n = {n}, {ps})"


@dataclass(frozen=True)
class Comparison:
    """A line of a table of comparisons."""

    dataset: str
    where: str
    paired: Paired | None  # None: no seed in common


def pair(a: Iterable[Row], b: Iterable[Row], over: str = "images") -> Paired | None:
    """Compare by seed; None where no seed is in both.

    `over`: by the accuracy over all test "images", or by its mean over "classes".
    """
    a_by_seed = {row.seed: row for row in a if row.accuracy is not None}
    b_by_seed = {row.seed: row for row in b if row.accuracy is not None}
    seeds = sorted(a_by_seed.keys() & b_by_seed.keys())
    scores_by_side = [[_score(rows[seed], over) for seed in seeds] for rows in (a_by_seed, b_by_seed)]
    left, right = (Spread.of(scores) for scores in scores_by_side)
    if left is None or right is None:
        return None
    points = np.subtract(scores_by_side[1], scores_by_side[0])
    # Equal counts over equal totals are equal: rounding is no difference.
    points[np.abs(points) < 1e-9] = 0.0
    difference = Spread.of(points.tolist())
    assert difference is not None
    identical = not points.any()
    return Paired(
        left, right, difference, _classes(a_by_seed, seeds), _classes(b_by_seed, seeds), _test(points), identical
    )


def _score(row: Row, over: str) -> float:
    """In per cent."""
    return 100.0 * ((row.balanced_accuracy if over == "classes" else row.accuracy) or 0.0)


def _classes(rows: dict[int, Row], seeds: list[int]) -> Spread | None:
    values = [rows[seed].balanced_accuracy for seed in seeds]
    return Spread.of([100.0 * value for value in values if value is not None])


def _test(points: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Paired t test; signed-rank test with enough pairs; exact sign test if all differences are equal."""
    from scipy import stats

    n = len(points)
    if n < 2 or not points.any():
        return ()
    if np.ptp(points) <= 1e-9 * np.abs(points).max():
        return (("sign test", 2.0 ** (1 - n)),)
    tests = [("t test", float(stats.ttest_1samp(points, 0.0).pvalue))]  # of the differences: that is the paired test
    if np.count_nonzero(points) >= _PAIRS_FOR_RANKS:
        tests.append(("rank test", float(stats.wilcoxon(points[points != 0]).pvalue)))
    return tuple(tests)


def compare_named(grid: Grid) -> list[tuple[str, str, list[Comparison]]]:
    """The comparisons that the experiment names: (a, b, lines). Those without any run are left out."""
    compared = [(a, b, _compare(grid, a, b)) for a, b in grid.experiment.compare]
    return [(a, b, lines) for a, b, lines in compared if any(line.paired is not None for line in lines)]


def _compare(grid: Grid, a: str, b: str) -> list[Comparison]:
    experiment = grid.experiment
    columns = {cell.column for cell in experiment.cells}
    by_column = a in columns and b in columns
    places: dict[tuple[str, object, str], tuple[list[CellResult], list[CellResult]]] = {}
    for result in grid.results:
        cell = result.cell
        label, other = (cell.column, cell.row) if by_column else (cell.row, cell.column)
        if label not in (a, b):
            continue
        along = getattr(cell.settings, experiment.x, None) if experiment.kind == "curve" else None
        sides = places.setdefault((other, along, cell.settings.dataset), ([], []))
        sides[0 if label == a else 1].append(result)
    lines = []
    for left, right in places.values():
        for one in left:
            # Several cells in one place differ in the rule: compare those with the same rule.
            same = [two for two in right if two.cell.settings.rule == one.cell.settings.rule]
            alone = len(left) == len(right) == 1
            for two in right if alone else same[:1]:
                where = _where(experiment, one.cell, by_column)
                lines.append(Comparison(one.cell.settings.dataset, where, pair(one.rows, two.rows, one.cell.over)))
    return lines


def _where(experiment: Experiment, cell: Cell, by_column: bool) -> str:
    """What both sides of a comparison have in common."""
    other = cell.row if by_column else cell.column
    if experiment.kind == "curve":
        place = show_setting(getattr(cell.settings, experiment.x, None))
        several = len(experiment.dataset_names) > 1
        parts = (cell.settings.dataset if several else "", other if other != place else "")
        return ", ".join([*filter(None, parts), f"{experiment.x.replace('_', ' ')} {place}"])
    return other or describe(cell.settings, ("n_layers",))


def compare_rules(groups: dict[Settings, list[Row]]) -> list[Comparison]:
    """The leak: runs that differ only in the source of the dictionary images; published minus clean."""
    lines = []
    for settings in sorted(groups, key=_order):
        if settings.rule != "clean":
            continue
        paired = pair(groups[settings], groups.get(replace(settings, rule="published"), []))
        if paired is not None:
            lines.append(Comparison(settings.dataset, describe(settings, ("rule",)), paired))
    return lines


@dataclass(frozen=True)
class DepthLine:
    """Accuracy by depth for settings that are otherwise equal."""

    dataset: str
    where: str
    base: int  # the smallest depth run
    accuracies: dict[int, Spread]
    paired: dict[int, Paired | None]  # every other depth against the smallest
    collapses: bool  # whether it has the paper's form (docs/method.md 2.1)

    @property
    def prediction(self) -> str:
        return "no gain" if self.collapses else "nothing: another network than the paper's"

    @property
    def measured(self) -> str:
        """The results of the tests of depth, in words."""
        outcomes = {depth: p.outcome for depth, p in self.paired.items() if p is not None and p.outcome}
        if not outcomes:
            return "cannot be tested yet"
        gains = [str(depth) for depth, outcome in outcomes.items() if outcome == "higher"]
        losses = [str(depth) for depth, outcome in outcomes.items() if outcome == "lower"]
        found = [f"a gain at depth {', '.join(gains)}"] if gains else ["no gain seen"]
        return "; ".join(found + ([f"a loss at depth {', '.join(losses)}"] if losses else []))


def compare_depths(groups: dict[Settings, list[Row]]) -> list[DepthLine]:
    """Settings that were run at two depths or more; those with the most depths come first."""
    families: dict[Settings, dict[int, list[Row]]] = defaultdict(dict)
    for settings, rows in groups.items():
        measured = [row for row in rows if row.accuracy is not None]
        if measured:
            families[settings.without_depth()][settings.n_layers] = measured
    lines = []
    for settings in sorted(families, key=_order):
        depths = dict(sorted(families[settings].items()))
        if len(depths) < 2:
            continue
        base = next(iter(depths))
        spreads = {depth: Spread.of([100.0 * (row.accuracy or 0.0) for row in rows]) for depth, rows in depths.items()}
        lines.append(
            DepthLine(
                settings.dataset,
                describe(settings, ("n_layers",)),
                base,
                {depth: spread for depth, spread in spreads.items() if spread is not None},
                {depth: pair(depths[base], rows) for depth, rows in depths.items() if depth != base},
                settings.layer == "dictionary" and settings.depth == "augment",
            )
        )
    return sorted(lines, key=lambda line: -len(line.accuracies))


def summarise_depths(lines: Sequence[DepthLine]) -> str:
    """Count the outcomes of the table, for layers that are dictionaries."""
    lines = [line for line in lines if line.collapses]
    pairs = [p for line in lines for p in line.paired.values() if p is not None]
    outcomes = [p.outcome for p in pairs if p.outcome]
    n_single, n_tested = len(pairs) - len(outcomes), len(outcomes)
    n_gains, n_losses = outcomes.count("higher"), outcomes.count("lower")
    differences = [p.difference.mean for p in pairs]
    if not pairs:
        return "No two depths have a seed in common, so nothing can be compared."
    text = (
        f"Of {count(len(pairs), 'comparison')} with the smallest depth run, {n_tested} have two seeds or more: "
        f"a gain can be seen in {n_gains}, a loss in {n_losses}, no difference in {outcomes.count('level')}. "
    )
    if n_gains or n_losses:  # each pair is tested on its own, and many tests find something by chance
        text += f"By chance alone about {LEVEL * n_tested:.1f} of {n_tested} would show one or the other. "
    if n_single:
        text += f"{count(n_single, 'comparison')} with one seed cannot be tested. "
    return text + (
        f"The differences run from {show_difference(min(differences))} to {show_difference(max(differences))} points."
    )


def _order(settings: Settings) -> tuple[str, list[tuple[int, int, str]]]:
    return settings.dataset, natural_key(describe(settings))

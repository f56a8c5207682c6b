"""Paired tests over seeds: what they say where there is something to say, and where there is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report.approximation import describe_errors
from ddlcn.report.classes import sum_counts
from ddlcn.report.comparisons import Paired, compare_depths, compare_named, compare_rules, pair
from ddlcn.report.results import fill_grid, group_by_settings
from ddlcn.report.writing import Spread, describe, show_difference, show_number, show_p

from .made_up import make_row

SETTINGS = Settings("mnist", 5)


def runs(accuracies: list[float], settings: Settings = SETTINGS) -> list[Row]:
    return [Row(settings, seed, accuracy) for seed, accuracy in enumerate(accuracies)]


def paired(a: list[float], b: list[float]) -> Paired:
    result = pair(runs(a), runs(b))
    assert result is not None
    return result


def test_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(0.8, 0.9, 10)
    b = a + rng.normal(0.01, 0.01, 10)
    result = paired(a.tolist(), b.tolist())
    assert result.difference.mean == pytest.approx(100 * np.mean(b - a))
    assert dict(result.tests) == pytest.approx(
        {"t test": stats.ttest_rel(b, a).pvalue, "rank test": stats.wilcoxon(b - a).pvalue}
    )


def test_pairs_by_seed_and_not_by_place() -> None:
    a, b = runs([0.1, 0.2, 0.3]), runs([0.4, 0.6, 0.8])
    result = pair(a[1:], reversed(b[:2]))
    assert result is not None
    assert result.difference.n == 1
    assert result.difference.mean == pytest.approx(40.0)
    assert pair(a[:1], b[1:]) is None


def test_pairs_by_the_accuracy_that_is_asked_for() -> None:
    a = [Row(SETTINGS, seed, 0.5, by_class) for seed, by_class in enumerate((0.1, 0.2))]
    b = [Row(SETTINGS, seed, 0.5, by_class) for seed, by_class in enumerate((0.4, 0.6))]
    result = pair(a, b, "classes")
    assert result is not None
    assert result.difference.mean == pytest.approx(35.0)
    assert paired([0.5, 0.5], [0.5, 0.5]).difference.mean == 0.0


@pytest.mark.parametrize("n", [2, 6, 10])
def test_equal_runs_are_equal(n: int) -> None:
    result = paired([0.9] * n, [0.9] * n)
    assert result.verdict == f"equal on every one of {n} seeds"
    assert result.outcome == "level"


def test_one_difference_on_all_seeds_is_tested_by_signs() -> None:
    assert dict(paired([0.5] * 3, [0.6] * 3).tests) == {"sign test": 0.25}
    assert paired([0.5] * 10, [0.6] * 10).verdict == "higher (n = 10, sign test p = 0.002)"


def test_mostly_equal_runs_are_tested_without_warning() -> None:
    result = paired([0.5] * 9 + [0.6], [0.5] * 10)
    assert result.verdict.startswith("no difference can be seen (n = 10, t test p = 0.3")


def test_one_seed_cannot_be_tested() -> None:
    assert paired([0.5], [0.9]).verdict == "one seed: cannot be tested"


def test_a_difference_needs_every_test() -> None:
    spread = Spread(1.0, 1.0, 10)
    result = Paired(spread, spread, spread, None, None, (("t test", 0.04), ("rank test", 0.06)), False)
    assert result.verdict == "no difference can be seen (n = 10, t test p = 0.040, rank test p = 0.060)"


@pytest.mark.parametrize("by", ["column", "row"])
def test_compares_what_the_experiment_names(by: str) -> None:
    cells, rows = [], []
    for q in (1, 2):
        for depth in (2, 3):
            settings = replace(SETTINGS, atoms_per_class=q, n_layers=depth)
            place = (f"q {q}", f"depth {depth}") if by == "column" else (f"depth {depth}", f"q {q}")
            cells.append(Cell(*place, settings, 3))
            rows += runs([0.1 * q + 0.01 * depth + 0.001 * seed * depth for seed in range(3)], settings)
    experiment = Experiment("x", "x", "", "table", "", tuple(cells), (("depth 2", "depth 3"),))
    ((a, b, lines),) = compare_named(fill_grid(experiment, group_by_settings(rows)))
    assert (a, b) == ("depth 2", "depth 3")
    assert [line.where for line in lines] == ["q 1", "q 2"]
    assert [line.paired.difference.mean for line in lines if line.paired] == pytest.approx([1.1, 1.1])


def test_rules_in_one_place_are_compared_like_with_like() -> None:
    leaky = replace(SETTINGS, rule="published")
    cells = (
        Cell("a", "depth 2", SETTINGS, 2),
        Cell("a", "depth 2", leaky, 2),
        Cell("a", "depth 3", replace(SETTINGS, n_layers=3), 2),
    )
    experiment = Experiment("x", "x", "", "table", "", cells, (("depth 2", "depth 3"),))
    rows = [row for cell in cells for row in runs([0.5, 0.6], cell.settings)]
    ((_, _, lines),) = compare_named(fill_grid(experiment, group_by_settings(rows)))
    assert len(lines) == 1


def test_finds_the_leak_and_the_depths() -> None:
    rows = runs([0.5, 0.6]) + runs([0.7, 0.9], replace(SETTINGS, rule="published"))
    rows += runs([0.5, 0.6], replace(SETTINGS, n_layers=4)) + runs([0.1], replace(SETTINGS, beta=0.5))
    groups = group_by_settings(rows)
    (leak,) = compare_rules(groups)
    assert leak.paired is not None
    assert leak.paired.difference.mean == pytest.approx(25.0)
    (line,) = compare_depths(groups)
    assert list(line.accuracies) == [2, 4]
    assert (line.prediction, line.measured) == ("no gain", "no gain seen")


def test_confusion_is_what_mistakes_leave() -> None:
    row = Row(SETTINGS, 0, 0.5, mistakes=[[0, 1, 3], [2, 0, 1]], class_totals=[5, 4, 2])
    assert sum_counts([row, row]).tolist() == [[4, 6, 0], [0, 8, 0], [2, 0, 2]]
    made_up = make_row(SETTINGS, 0, 0.7, 30)
    assert sum_counts([made_up]).sum(axis=1).tolist() == made_up.class_totals


@pytest.mark.parametrize(
    ("means", "words"),
    [([0.4, 0.3, 0.2], "falls"), ([0.2, 0.3], "rises"), ([0.3, 0.3], "stays"), ([0.3, 0.2, 0.4], "neither")],
)
def test_tells_what_an_error_does(means: list[float], words: str) -> None:
    assert words in describe_errors(tuple(Spread(mean, None, 1) for mean in means))


def test_numbers_are_written_plainly() -> None:
    assert show_difference(-0.004) == "−0.004"
    assert show_difference(0.3) == "+0.30"
    assert show_difference(0.0) == "0.00"
    assert show_p(1e-9) == "p < 0.001"
    assert [show_number(value) for value in (None, 0.0, 0.2104, 12.34, 12345.6)] == [
        "–",
        "0",
        "0.210",
        "12.3",
        "12,346",
    ]
    settings = Settings("caltech101", 30, 31, 30, patch_size=(12, 16), n_neighbors=None)
    assert describe(settings) == "(31-30), 30 per class, depth 2, clean, k all, patch 12+16"

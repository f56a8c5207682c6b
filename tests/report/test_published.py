"""The paper's tables beside ours: verdicts, reasons, and the count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.published import load_published
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report.published import count_numbers, describe_metrics, read_tables
from ddlcn.report.results import fill_grid, group_by_settings
from ddlcn.report.timing import describe_times
from tests.report.made_up import make_row

SETTINGS = Settings("yaleb", 32, 1, 1, 2)
NAME = "III, DDLCN-2 (1-1), Included"


def read_lines(*accuracies, cells=None):
    cells = cells or (Cell("(1-1)", "depth 2", SETTINGS, 3, load_published()[NAME]),)
    rows = [make_row(SETTINGS, seed, accuracy, 38) for seed, accuracy in enumerate(accuracies)]
    experiment = Experiment("yaleb", "Extended Yale B", "", "table", "", cells, ())
    tables = read_tables([fill_grid(experiment, group_by_settings(rows))])
    return tables, {line.number.name: line for table in tables for line in table.lines}


@pytest.mark.parametrize(
    ("accuracies", "verdict"), [((0.9, 0.91), "reached"), ((0.86, 0.88), "close"), ((0.80, 0.81), "short"), ((), "")]
)
def test_ours_is_compared_with_the_published_number(accuracies, verdict):
    _, lines = read_lines(*accuracies)
    assert lines[NAME].verdict == verdict


def test_every_number_of_the_paper_has_a_line_in_its_table():
    tables, lines = read_lines(0.9)
    assert list(lines) == list(load_published())
    assert [table.number for table in tables] == ["II", "III", "IV", "V", "VI", "VII"]


def test_a_line_says_which_run_counts_or_why_there_is_none():
    _, lines = read_lines(0.9)
    assert lines[NAME].where == "Extended Yale B, (1-1), depth 2"
    assert lines[NAME].difference == "+2.58"
    assert lines["VI, VGG19, 60"].reason == load_published()["VI, VGG19, 60"].not_run
    _, lines = read_lines()
    assert (lines[NAME].where, lines[NAME].reason) == ("", "not run")


def test_a_line_says_what_is_doubtful_about_the_number():
    _, lines = read_lines(0.9)
    assert lines["III, FDDL, Included"].remark == f"not run; {load_published()['III, FDDL, Included'].note}"


def test_the_first_run_counts_where_there_are_several():
    other = replace(SETTINGS, beta=0.01)
    cells = tuple(Cell(row, "", s, 3, load_published()[NAME]) for row, s in (("one", SETTINGS), ("two", other)))
    _, lines = read_lines(0.9, cells=cells)
    assert lines[NAME].where == "Extended Yale B, one"
    _, lines = read_lines(0.9, cells=cells[::-1])  # the other has no run
    assert lines[NAME].where == "Extended Yale B, one"


def test_times_stand_beside_ours_without_a_verdict():
    _, lines = read_lines(0.9)
    line = lines["III, DDLCN-2 (1-1), Time (ms)"]
    assert line.ours
    assert (line.verdict, line.difference) == ("", "")


def test_a_cell_of_times_comes_before_those_of_accuracies():
    name = "III, DDLCN-2 (1-1), Time (ms)"
    timed, number = replace(SETTINGS, measure="time"), load_published()
    cells = (Cell("one", "", SETTINGS, 3, number[NAME]), Cell("times", "", timed, 1, number[name]))
    experiment = Experiment("own", "Own", "", "table", "", cells, ())
    clocks = {"seconds_per_image": 0.012, "seconds_to_code": 0.003, "seconds_to_classify": 0.0002}
    rows = [make_row(SETTINGS, 0, 0.9), Row(timed, 0, **clocks)]
    grid = fill_grid(experiment, group_by_settings(rows))
    assert describe_times(grid) == [
        "times: 12.0 ms an image, 3.00 of them without the descriptors, 0.200 for the classifier."
    ]
    lines = {line.number.name: line for table in read_tables([grid]) for line in table.lines}
    assert (lines[name].ours, lines[name].where) == ("12.0 (3.00; 0.200)", "Own, times")
    assert lines[NAME].ours == "90.00"
    grid = fill_grid(experiment, group_by_settings(rows[:1]))
    assert describe_times(grid) == ["times: not run."]


def test_a_method_far_above_its_figure_says_how_many_images_would_explain_it():
    name = "III, FDDL, Included"
    vectors = (("kind", "random"), ("n_components", 504))
    settings = {n: Settings("yaleb", n, method="FDDL", vectors=vectors) for n in (5, 20, 32)}
    table = Experiment("own", "Own", "", "table", "", (Cell("FDDL", "", settings[32], 1, load_published()[name]),), ())
    curve = tuple(Cell(f"{n}", "FDDL", settings[n], 1) for n in (5, 20))
    contest = Experiment("contest", "Contest", "", "contest", "train_per_class", curve, ())

    def read(at_20):
        accuracies = {5: 0.8002, 20: at_20, 32: 0.98}
        groups = group_by_settings([make_row(own, 0, accuracies[n]) for n, own in settings.items()])
        tables = read_tables([fill_grid(table, groups), fill_grid(contest, groups)])
        return {line.number.name: line for each in tables for line in each.lines}[name]

    assert read(1.0).n_images == pytest.approx(10.0, abs=0.01)  # half way, for 90.01: the middle of 5 and 20
    assert "with about 10 training images" in read(1.0).remark
    assert read(0.85).n_images is None
    settings[20] = replace(settings[20], vectors=(("kind", "pixels"),))  # another input says nothing
    contest = replace(contest, cells=(Cell("20", "FDDL", settings[20], 1),))
    assert read(1.0).n_images is None


def test_both_metrics_are_shown_where_they_differ():
    names = ("V, LLC, 30", "V, DDLCN-3 (31-30), 30")
    settings = [replace(SETTINGS, dataset="caltech101", n_layers=n) for n in (1, 3)]
    cells = tuple(
        Cell(name, "", own, 1, load_published()[name], over=over)
        for name, own, over in zip(names, settings, ("classes", "images"), strict=True)
    )
    rows = [make_row(own, 0, right, balanced_accuracy=0.75) for own, right in zip(settings, (0.86, 0.83), strict=True)]
    experiment = Experiment("own", "Own", "", "table", "", cells, ())
    tables = read_tables([fill_grid(experiment, group_by_settings(rows))])
    lines = {line.number.name: line for table in tables for line in table.lines}
    assert lines[names[0]].ours == "75.00 over classes (86.00 over images)"
    assert lines[names[1]].ours == "83.00 (75.00 over classes)"
    text = describe_metrics(tables)
    assert "differ by up to 11.0 points" in text
    assert "over all test images: LLC 86.0, DDLCN-3 (31-30) 83.0." in text
    assert describe_metrics(read_lines(0.9)[0]) == ""


def test_the_count_adds_up():
    tables, _ = read_lines(0.9)
    text = count_numbers(tables)
    assert "240 numbers" in text
    assert "215 are accuracies: ours is at or above 1, short of 0 by" in text
    assert "214 were not run" in text
    assert "25 are times; 1 of them stand beside ours" in text


def test_experiments_of_ones_own_have_no_such_tables():
    assert read_lines(0.9, cells=(Cell("mine", "", SETTINGS, 1),))[0] == []

"""Who wins when: ranks, y_pred, what is over budget, and the same numbers on the page and in the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report import write_report, write_summary
from ddlcn.report.contest import N_BEST, conclude, read_panels
from ddlcn.report.results import fill_grid, group_by_settings

from .made_up import make_row, make_table
from .parsing import Page

METHODS = ("ddlcn fast", "SRC", "CRC", "LLC", "KC", "linear SVM", "FDDL", "small CNN")


def make_contest() -> tuple[list[Row], Experiment]:
    """The i-th method is right in 90 - 5 i of 100; SRC wins with one image; FDDL has no time; the CNN is not run."""
    cells, rows = [], []
    for method in METHODS:
        for t in (1, 5):
            settings = Settings("ar", t, method=method)
            cells.append(Cell("ar", method, settings, 3))
            if method == "small CNN":
                continue
            if method == "FDDL" and t == 5:
                rows.append(Row(settings, 0, note="over budget: learning takes more than 10 minutes"))
                continue
            level = 0.9 - 0.05 * METHODS.index(method) - 0.3 * (t == 1) + 0.2 * (t == 1 and method == "SRC")
            rows += [make_row(settings, seed, level + 0.01 * (seed - 1), mistakes=[]) for seed in range(3)]
    return rows, Experiment("contest", "Who wins when", "", "contest", "train_per_class", tuple(cells), ())


@pytest.fixture(scope="module")
def panel():
    rows, experiment = make_contest()
    (panel,) = read_panels(fill_grid(experiment, group_by_settings(rows)))
    return panel


def test_methods_are_ranked_by_their_accuracy_with_most_images(panel):
    assert [standing.method for standing in panel.standings] == list(METHODS[:-1])
    assert [standing.method for standing in panel.prominent] == ["ddlcn fast", *METHODS[1 : 1 + N_BEST]]


def test_the_best_method_by_number_of_images(panel):
    assert panel.find_best(1).method == "SRC"
    assert panel.find_best(5).method == "ddlcn fast"


def test_what_is_concluded(panel):
    """Every method is a point better with every next seed, so the pairs differ by one number and decide nothing."""
    (sentence,) = conclude([panel])
    assert sentence.startswith("ar: most accurate is SRC with 1; ddlcn fast with 5 images per class.")
    assert sentence.endswith("in pairs over seeds: no difference can be seen with 1, 5.")


@pytest.mark.parametrize(
    ("ours", "place"),
    [((0.90, 0.91, 0.93), "higher"), ((0.70, 0.71, 0.73), "lower"), ((0.70, 0.81, 0.93), "level"), ((0.9,), "")],
)
def test_our_place_is_tested_seed_by_seed(ours, place):
    """SRC is at 80 %; CRC, below it, does not matter, and neither does a weaker one of ours."""
    scores = {"ddlcn fast": ours, "ddlcn accurate": (0.3,) * len(ours), "SRC": (0.8, 0.8, 0.8), "CRC": (0.2, 0.2, 0.2)}
    cells, rows = [], []
    for method, accuracies in scores.items():
        settings = Settings("ar", 5, method=method)
        cells.append(Cell("ar", method, settings, 3))
        rows += [make_row(settings, seed, accuracy, mistakes=[]) for seed, accuracy in enumerate(accuracies)]
    experiment = Experiment("contest", "Who wins when", "", "contest", "train_per_class", tuple(cells), ())
    (panel,) = read_panels(fill_grid(experiment, group_by_settings(rows)))
    assert panel.compare_best(5) == place


def test_page_and_summary_say_the_same(tmp_path: Path):
    rows, experiment = make_contest()
    write_report(rows, [experiment, make_table()], tmp_path / "report.html")
    write_summary(rows, [experiment, make_table()], tmp_path / "RESULTS.md")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    table = {row[0]: row[1:] for row in page.table_with("method", "fit, s")}
    assert table["SRC"][0] == "75.0 ± 2.5"  # Student's interval of three seeds that are a point apart
    assert table["FDDL"][1] == "over budget"
    assert "small CNN" not in table
    summary = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "| SRC | 75.0 ± 2.5 | 85.0 ± 2.5 |" in summary
    assert "| FDDL | 30.0 ± 2.5 | over budget |" in summary
    assert "ar: most accurate is SRC with 1" in summary
    assert "± half its 95 % interval" in summary  # elsewhere on that page it is a standard deviation


def test_other_methods_are_not_taken_for_ours(tmp_path: Path):
    rows, experiment = make_contest()
    write_report(rows, [experiment], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No setting has been run at two depths" in text
    assert "Best and worst classes" not in text


def test_a_curve_with_other_methods_shows_what_they_cost(tmp_path: Path):
    cells, rows = [], []
    for method in ("DDLCN", "KSVD"):
        for q in (5, 10):
            settings = Settings("caltech101", 30, atoms_per_class=q, method=method)
            cells.append(Cell(str(q), method, settings, 1))
            rows.append(make_row(settings, 0, 0.7, mistakes=[], seconds_per_image=0.001 * q))
    size = Experiment("size", "By size", "", "curve", "atoms_per_class", tuple(cells), ())
    write_report(rows, [size], tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    labels = [attributes["aria-label"] for tag, attributes in page.elements if tag == "svg"]
    assert "Line charts: By size, time to train and time per image." in labels
    (row,) = [row for row in page.table_with("DDLCN", "KSVD") if row[0] == "10"]
    assert "10.0 ms per image · fit 81.0 s" in row[2]
    write_summary(rows, [size], tmp_path / "RESULTS.md")
    assert "| 1 of 1 | 10.0 | 81.0 |" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")

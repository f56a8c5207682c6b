"""The HTML page: what it says, that it says it safely, and that it needs nothing else."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset, make_dataset
from ddlcn.experiments.catalogue import Cell, Experiment, make_quick
from ddlcn.experiments.published import find_published
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report import pictures, write_report

from .made_up import HOSTILE, make_curve, make_everything, make_row, make_table
from .parsing import Page, list_fetched

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def write(rows: list[Row], experiments: list[Experiment], folder: Path) -> str:
    write_report(rows, experiments, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(*make_everything(), tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_is_well_formed_and_needs_nothing_else(html: str, page: Page) -> None:
    assert page.errors == []
    assert list_fetched(html) == []
    assert page.count("script") == 0
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    places = [a["href"][1:] for tag, a in page.elements if tag == "a" and a.get("href", "").startswith("#")]
    assert places
    assert set(places) <= set(ids)


def test_is_accessible(page: Page) -> None:
    assert all(attributes.get("alt") for tag, attributes in page.elements if tag == "img")
    assert all(a.get("aria-label") and a.get("role") == "img" for tag, a in page.elements if tag == "svg")
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in page.elements if tag == "th")


def test_cells_say_ours_published_difference_seeds_and_rule(page: Page) -> None:
    table = {row[0]: row[1:] for row in page.table_with("depth 2", "depth 3")}
    best = table["(A-15)"][0]
    for words in ("mean over classes", "published 98.34", "bar 98.76 ✓ reached", "clean rule · 10 of 10 seeds"):
        assert words in best
    assert re.search(r"9[89]\.\d\d ± 0\.\d\d", best)
    assert "no published figure available published rule · 10 of 10 seeds" in best  # the other rule, in the same place
    assert "short" in table["(15-15)"][1]
    assert "3 of 10 seeds" in table["(15-15)"][1]
    assert table["(55-15)"][0].startswith("not run")
    assert "0 of 10 seeds" in table["(55-15)"][0]
    assert "p = 15 asked for, 12 there are: p = 12" in page.text


def test_says_what_was_run_and_reached(page: Page) -> None:
    assert "35 of 37 cells of tables and curves have been run" in page.text
    assert "6 of them with fewer seeds than planned" in page.text
    assert "Of the 10 that have a published number" in page.text


def test_leak_and_depth_stand_side_by_side(page: Page) -> None:
    leak = page.table_with("clean", "published", "published − clean")
    assert leak[1][:2] == ["yaleb", "(A-15), 32 per class, depth 2"]
    depths = page.table_with(*(f"depth {depth}" for depth in range(1, 7)), "predicted", "measured")
    assert depths[1][0] == "mnist"
    assert depths[1][-2] == "no gain"
    assert "base" in depths[1][2]
    assert "not run" in depths[2][2]
    assert "never sees the descriptor" in page.text


def test_tells_whether_the_error_falls(page: Page) -> None:
    assert "Extended Yale B: the error rises, from 0.3" in page.text
    assert "MNIST: the error falls, from 0.4" in page.text
    assert "AR: not run." in page.text


def test_large_sets_list_their_most_confused_pairs(page: Page) -> None:
    assert "The 20 most confused pairs, of 101 classes" in page.text


def test_a_thousand_classes_are_no_trouble(tmp_path: Path) -> None:
    cell = Cell("a", "b", Settings("huge", 5), 1)
    rows = [make_row(cell.settings, 0, 0.5, 1000)]
    html = write(rows, [Experiment("x", "x", "", "table", "", (cell,), ())], tmp_path)
    assert "most confused pairs, of 1000 classes" in html
    assert len(html) < 2_000_000


def test_equal_rows_give_equal_pages(html: str, tmp_path: Path) -> None:
    rows, experiments = make_everything()
    assert write([*reversed(rows), rows[0]], experiments, tmp_path) == html


def test_names_stay_text(tmp_path: Path) -> None:
    settings = Settings("mnist", 5)
    row = make_row(settings, 0, 0.6, 4, class_names=[HOSTILE, "a & b", "$5", "]]>"], note=HOSTILE, machine=HOSTILE)
    cells = (
        Cell(HOSTILE, '" onload="x', settings, 2, find_published(50.0)),
        Cell(HOSTILE, "curve", replace(settings, beta=0.5), 2),
    )
    experiments = [
        Experiment("x", HOSTILE, HOSTILE, "table", "", cells, ()),
        Experiment("x", HOSTILE, "--> <!--", "curve", "beta", cells, (('" onload="x', "curve"),)),
    ]
    html = write([row], experiments, tmp_path)
    page = Page(html)
    assert page.errors == []
    assert page.count("script") == 0
    assert "<script" not in html
    assert not any("onload" in attributes for _, attributes in page.elements)
    assert HOSTILE in page.text
    assert "$5" in page.text


def test_one_seed_has_no_sd_and_no_test(tmp_path: Path) -> None:
    table = make_table()
    rows = [make_row(cell.settings, 0, 0.95) for cell in table.cells]
    page = Page(write(rows, [table], tmp_path))
    assert "1 of 10 seeds" in page.text
    assert "one seed: cannot be tested" in page.text
    assert "±" not in page.table_with("depth 2", "depth 3")[1][1]


def test_quick_rows_never_mix_with_results(tmp_path: Path) -> None:
    rows, experiments = make_everything()
    small = make_quick(make_curve())
    quick = [make_row(cell.settings, 0, 0.123456) for cell in small.cells]
    mixed = Page(write(rows + quick, experiments, tmp_path))
    assert "12.35" not in mixed.text
    assert "uick look" not in mixed.text
    # Alone they are shown, whether the experiments given are quick ones already or not.
    for given in ([small], experiments):
        alone = Page(write(quick, given, tmp_path))
        assert "Quick look, not the result" in alone.text
        assert "12.35" in alone.text
        assert "Extended Yale B" not in alone.text


def test_more_seeds_than_asked_for_are_left_out(tmp_path: Path) -> None:
    cell = Cell("a", "b", Settings("mnist"), 2, find_published(90.0))
    rows = [make_row(cell.settings, seed, 0.9) for seed in range(5)]
    page = Page(write(rows, [Experiment("x", "x", "", "table", "", (cell,), ())], tmp_path))
    assert "2 of 2 seeds" in page.text


def test_a_curve_with_nothing_run_says_so(tmp_path: Path) -> None:
    rows, experiments = make_everything()
    rows = [row for row in rows if row.settings.dataset == "yaleb"]
    page = Page(write(rows, experiments, tmp_path))
    assert page.errors == []
    assert "not run" in page.text


def test_no_rows_and_no_cells_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ddlcn reproduce"):
        write_report([], [make_table()], tmp_path / "report.html")
    with pytest.raises(ValueError, match="no table or figure"):
        write_report([make_row(Settings("mnist"), 0, 0.9)], [], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_says_which_extra_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'ddlcn[report]'")):
        write_report(*make_everything(), tmp_path / "report.html")


def make_set(class_names: list[str], **fields: Any) -> Dataset:
    """A data set as `load_dataset` returns it, two pictures per class."""
    labels = np.repeat(np.arange(len(class_names)), 2)
    images = [np.full((200, 120), 20 * label, dtype=np.uint8) for label in labels]
    names = tuple(str(i) for i in range(len(labels)))
    return Dataset("objects", "Objects", images, labels, tuple(class_names), names, **fields)


def page_with_pictures(dataset: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr(pictures, "_load", lambda name: dataset)
    cell = Cell("a", "b", Settings(dataset.name, 5), 1)
    row = make_row(cell.settings, 0, 0.8, len(dataset.class_names), class_names=list(dataset.class_names))
    return Page(write([row], [Experiment("x", "x", "", "table", "", (cell,), ())], folder))


def test_shows_pictures_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["cat", "dog", "portraits", "cup", "pen", "key"]
    page = page_with_pictures(make_set(names, people_classes=frozenset({"portraits"})), tmp_path, monkeypatch)
    alts = [attributes["alt"] for tag, attributes in page.elements if tag == "img"]
    assert len(alts) == 2 * 5
    assert not any("portraits" in alt for alt in alts)


def test_a_set_that_may_not_be_shown_is_never_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data set decides, whatever it is called; no picture of it is even read."""
    drawn: list[Any] = []
    monkeypatch.setattr(pictures, "make_thumbnail", drawn.append)
    page = page_with_pictures(make_set(["a", "b", "c"], shows_people=True), tmp_path, monkeypatch)
    assert page.count("img") == 0
    assert drawn == []


def test_no_class_of_a_face_set_may_be_shown() -> None:
    found = [("p1", "p1-01", None), ("p2", "p2-01", None)]
    for name in ("yaleb", "yaleb-excluded", "ar"):
        dataset = make_dataset(CATALOGUE[name], found)
        assert not any(dataset.may_show(c) for c in range(2))

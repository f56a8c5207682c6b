"""Layers of a network: the numbers of the rows, in tables and sentences, and pictures where there are some."""

import re

import pytest

from ddlcn.experiments.catalogue import load_experiment
from ddlcn.experiments.store import Row
from ddlcn.report.claims import UNTESTED, read_claims
from ddlcn.report.evidence import FAILS, HOLDS, IN_PART
from ddlcn.report.layers import read_layers
from ddlcn.report.page import render_page
from ddlcn.report.published import read_tables
from ddlcn.report.results import fill_grid, group_by_settings
from ddlcn.report.summary import render_summary
from tests.report.made_up import make_row


def make_layers(gain=0.01, largest=0.9, turn=0.1, pictures=()):
    return [
        {
            "separability": 0.5 + gain * i, "largest_code": largest, "mean_code": 0.1, "orientations": 4.0 + turn * i,
            **({"pictures": list(pictures)} if pictures else {}),
        }
        for i in range(3)
    ]  # fmt: skip


def make_rows(**how):
    cells = load_experiment("layers").cells[:2]
    return [Row(cell.settings, seed, layers=make_layers(**how)) for cell in cells for seed in range(2)]


def read(rows):
    return read_layers(fill_grid(load_experiment("layers"), group_by_settings(rows)))


def test_lines_have_the_numbers_of_the_rows():
    lines = read(make_rows())
    assert [len(line.separability) for line in lines] == [3, 3, 0, 0]
    first = lines[0]
    assert [round(each.mean, 6) for each in first.separability] == [0.5, 0.51, 0.52]
    assert first.very_large == pytest.approx(9.0)
    assert "0.500 with one layer, 0.520 with 3" in first.sentence
    assert lines[3].sentence == "Caltech 101: not run."


def test_page_and_summary_show_them():
    yaleb = load_experiment("yaleb")
    rows = [*make_rows(pictures=[[[0] * 16] * 16]), make_row(yaleb.cells[0].settings, 0, 0.9)]
    experiments = [yaleb, load_experiment("layers")]
    page, summary = render_page(rows, experiments), render_summary(rows, experiments)
    assert len(re.findall(r'alt="Atom 1"', page)) == 2 * 3
    for text in (page, summary):
        assert "0.5200 ± 0.0000" in text
        assert "orientations of an atom" in text


@pytest.mark.parametrize(
    ("how", "separability", "hierarchy"),
    [
        ({}, HOLDS, HOLDS),
        ({"gain": -0.01}, IN_PART, HOLDS),
        ({"gain": -0.01, "largest": 1.1}, FAILS, HOLDS),
        ({"turn": -0.1}, HOLDS, FAILS),
    ],
)
def test_the_claims_follow(how, separability, hierarchy):
    rows = [*make_rows(**how), make_row(load_experiment("yaleb").cells[0].settings, 0, 0.9)]
    grids = [fill_grid(load_experiment(name), group_by_settings(rows)) for name in ("yaleb", "layers")]
    verdicts = {each.id: each.found.verdict for each in read_claims(grids, read_tables(grids), [])}
    assert (verdicts["separability"], verdicts["hierarchy"]) == (separability, hierarchy)
    assert verdicts["speed"] == UNTESTED

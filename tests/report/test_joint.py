"""Joint training in the report: both errors by epoch, atoms before and after, and how many runs were trained at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.settings import Settings
from ddlcn.report.joint import read_joint
from ddlcn.report.page import render_page
from ddlcn.report.results import fill_grid, group_by_settings
from tests.report.made_up import make_row

FROZEN = Settings("yaleb", train_per_class=32, n_layers=1)
JOINT = replace(FROZEN, joint=True)
CELLS = (Cell("Yale", "frozen", FROZEN, 3), Cell("Yale", "joint", JOINT, 3))
EXPERIMENT = Experiment("joint", "Together", "", "table", "", CELLS, ())


def make_rows():
    before, after = np.full((2, 128), 0.1), np.linspace(0, 1, 256).reshape(2, 128)
    atoms = [[before.tolist(), after.tolist()]]
    return [
        make_row(FROZEN, 0, 0.9),
        make_row(JOINT, 0, 0.95, epochs=[[2.0, 10.0], [1.0, 11.0]], atoms=atoms),
        make_row(JOINT, 1, 0.95, epochs=[[4.0, 20.0], [1.0, 18.0]], atoms=atoms),
        make_row(JOINT, 2, 0.9),
    ]


def test_errors_are_shares_of_the_first_epoch():
    (line,) = read_joint(fill_grid(EXPERIMENT, group_by_settings(make_rows())))
    np.testing.assert_allclose(line.classification, [1.0, (0.5 + 0.25) / 2])
    np.testing.assert_allclose(line.reconstruction, [1.0, (1.1 + 0.9) / 2])
    assert (line.n_trained, line.n_runs) == (2, 3)
    assert line.sentence == (
        "Yale, joint: 2 of 3 runs were trained jointly; from the first epoch to the last the classification error fell "
        "to 38 %, and the reconstruction error went to 100 % of what it was."
    )


def test_where_folds_said_no_it_says_so():
    (line,) = read_joint(fill_grid(EXPERIMENT, group_by_settings([make_row(JOINT, 0, 0.9)])))
    assert "0 of 1 runs" in line.sentence
    assert line.layers == ()


def test_presets_to_which_it_was_offered_have_a_line_too():
    offered = Settings("yaleb", train_per_class=1, method="ddlcn auto", options=(("joint", True),))
    cells = (Cell("auto", "frozen", replace(offered, options=()), 1), Cell("auto", "joint", offered, 1))
    rows = [make_row(cell.settings, 0, 0.9) for cell in cells]
    (line,) = read_joint(fill_grid(replace(EXPERIMENT, cells=cells), group_by_settings(rows)))
    assert line.sentence.startswith("auto, joint: 0 of 1 runs")


def test_the_page_has_the_curves_and_the_atoms():
    page = render_page(make_rows(), [EXPERIMENT])
    assert "both errors of joint training by epoch" in page
    assert page.count('class="glyph"') == 4
    assert "layer 1, before" in page
    assert "2 of 3 runs were trained jointly" in page

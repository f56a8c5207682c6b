"""The paper's claims: verdicts that follow from the rows, on the experiments of the package."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.experiments.catalogue import load_experiment
from ddlcn.experiments.published import list_claims
from ddlcn.report.claim_tests import TESTS
from ddlcn.report.claims import UNTESTED, read_claims
from ddlcn.report.comparisons import compare_depths
from ddlcn.report.evidence import FAILS, HOLDS, IN_PART
from ddlcn.report.published import read_tables
from ddlcn.report.results import fill_grid, group_by_settings
from tests.report.made_up import make_row


def judge(claim, epochs=(), **accuracies):
    """The verdict on a claim."""
    return judge_all(epochs, **accuracies)[claim]


def judge_all(epochs=(), **accuracies):
    """All verdicts, from made-up accuracies of the cells of some experiments (None: not run)."""
    rows, experiments = [], []
    for name, measure in accuracies.items():
        experiment = load_experiment(name.replace("_", "-"))
        experiments.append(experiment)
        for place, cell in enumerate(experiment.cells):
            # Noise over three seeds, of every cell another, that leaves means alone: no difference comes by chance.
            noise, accuracy = 1e-4 * (1 + 0.01 * place) * np.array([1.0, -1.0, 0.0]), measure(cell)
            seeds = range(0 if accuracy is None else min(3, cell.seeds))
            rows += [
                make_row(
                    cell.settings,
                    seed,
                    accuracy + noise[seed],
                    38,
                    epochs=epochs if cell.column == "joint" else [],
                )
                for seed in seeds
            ]
    groups = group_by_settings(rows)
    grids = [fill_grid(experiment, groups) for experiment in experiments]
    claims = read_claims(grids, read_tables(grids), compare_depths(groups))
    for each in claims:
        assert bool(each.found.lines) == bool(each.found.sentence) == (each.found.verdict != UNTESTED)
        assert all(len(line) == len(each.found.head) for line in each.found.lines)
    return {each.id: each.found.verdict for each in claims}


def of_yaleb(cell):
    return 0.9


def test_without_runs_nothing_is_said():
    assert judge_all(yaleb=lambda cell: None) == {id: UNTESTED for id, _ in list_claims()}


def test_every_test_belongs_to_a_claim():
    assert set(TESTS) <= {id for id, _ in list_claims()}


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, FAILS), (0.02, HOLDS)])
def test_depth(gain, verdict):
    assert judge("depth", yaleb=lambda cell: 0.9 + gain * cell.settings.n_layers) == verdict


@pytest.mark.parametrize(("deeper", "verdict"), [(0.9, FAILS), (0.95, IN_PART)])
def test_depth_as_the_published_code_has_it(deeper, verdict):
    def measure(cell):
        return deeper if cell.settings.n_layers == 2 else 0.9

    assert judge("depth", yaleb=of_yaleb, published_code=measure) == verdict


@pytest.mark.parametrize(("yaleb", "ar", "verdict"), [(0.9, 0.998, HOLDS), (0.9, 0.9, IN_PART), (0.5, 0.5, FAILS)])
def test_few_atoms(yaleb, ar, verdict):
    assert judge("few-atoms", yaleb=lambda cell: yaleb, ar=lambda cell: ar) == verdict


@pytest.mark.parametrize(("at_one", "verdict"), [(0.8, HOLDS), (0.9, IN_PART)])
def test_p_peak(at_one, verdict):
    def measure(cell):
        return at_one if cell.settings.dictionary_images == 1 else 0.9

    assert judge("p-peak", yaleb=of_yaleb, yaleb_p=measure, ar_p=measure) == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(0.99, HOLDS), (0.5, FAILS)])
def test_one_atom_against_the_others_on_ar(ours, verdict):
    others = load_experiment("baselines")
    assert judge("ar-1-1", ar=lambda cell: ours, baselines=lambda cell: 0.9) == verdict
    assert any(cell.published and cell.published.table == "IV" for cell in others.cells)


@pytest.mark.parametrize(("ours", "verdict"), [(0.9, HOLDS), (0.5, FAILS)])
def test_few_images(ours, verdict):
    def of_others(cell):
        return None if cell.column.startswith("ddlcn") else 0.7

    assert judge("few-images", caltech101=lambda cell: ours, contest=of_others) == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(0.9, HOLDS), (0.5, FAILS)])
def test_dictionary_size(ours, verdict):
    def measure(cell):
        return ours if cell.settings.method == "DDLCN" else 0.7

    assert judge("dictionary-size", yaleb=of_yaleb, caltech101_size=measure) == verdict


@pytest.mark.parametrize(("joint", "verdict"), [(0.95, HOLDS), (0.9, FAILS)])
def test_joint(joint, verdict):
    def measure(cell):
        return joint if cell.column == "joint" else 0.9

    assert judge("joint", yaleb=of_yaleb, joint=measure) == UNTESTED  # frozen dictionaries stayed everywhere
    assert judge("joint", epochs=[[0.5, 0.2]], yaleb=of_yaleb, joint=measure) == verdict


@pytest.mark.parametrize(
    ("random", "trained", "verdict"),
    [(0.8, None, HOLDS), (0.95, None, FAILS), (0.8, 0.95, FAILS), (0.95, 0.8, HOLDS)],
)
def test_dictionaries_against_filters(random, trained, verdict):
    def measure(cell):
        return {"filters": random, "trained filters": trained}.get(cell.settings.layer, 0.9)

    assert judge("layer-beats-convolution", yaleb=of_yaleb, convolution=measure) == verdict

"""The paper's numbers: one source, and each has a run of ours or a reason."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from ddlcn.experiments.catalogue import experiment_names, load_experiment, parse_experiment
from ddlcn.experiments.published import FILE, find_published, load_published

FOLDER = resources.files("ddlcn.experiments").joinpath("paper")


def list_compared() -> set[str]:
    cells = [cell for name in experiment_names() for cell in load_experiment(name).cells]
    return {cell.published.name for cell in cells if cell.published is not None}


def test_the_paper_prints_240_numbers():
    numbers = load_published().values()
    assert len(numbers) == 240
    assert sum(number.is_time for number in numbers) == 25
    assert {number.table for number in numbers} == {"II", "III", "IV", "V", "VI", "VII"}


def test_every_number_has_a_run_or_a_reason():
    compared = list_compared()
    rows = {(number.table, number.row) for name, number in load_published().items() if name in compared}
    for name, number in load_published().items():
        is_planned = (number.table, number.row) in rows if number.is_time else name in compared
        assert is_planned or number.not_run, name


@pytest.mark.parametrize("name", experiment_names())
def test_no_experiment_types_a_number(name):
    table = tomllib.loads(FOLDER.joinpath(f"{name}.toml").read_text())
    stated = [
        entry["published"] for entry in (*table.get("cells", []), *table.get("sweeps", [])) if "published" in entry
    ]
    assert all(isinstance(each, str) for each in stated)


def test_the_file_of_numbers_is_no_experiment():
    assert FILE.removesuffix(".toml") not in experiment_names()


def test_a_number_knows_its_deviation_and_whose_it_is():
    number = load_published()["III, DDLCN-2 (1-1), Included"]
    assert (number.value, number.sd, number.is_own) == (87.42, 1.33, True)
    assert number.show() == "87.42 ± 1.33"
    assert not load_published()["III, SRC (all), Included"].is_own


def test_an_experiment_of_ones_own_may_state_a_number():
    table = {"title": "mine", "cells": [{"dataset": "mnist", "published": 98.5}]}
    (cell,) = parse_experiment("mine", table).cells
    assert cell.published is not None
    assert (cell.published.value, cell.published.name) == (98.5, "")
    assert find_published(None) is None


@pytest.mark.parametrize("stated", [True, [98.5], {"value": 98.5}])
def test_what_is_no_number_is_refused(stated):
    with pytest.raises(ValueError, match="a place in the paper or a number"):
        find_published(stated)


def test_a_place_that_the_paper_does_not_have_is_refused_with_its_neighbours():
    with pytest.raises(
        ValueError, match=r"no number 'III, DDLCN-2 \(1-2\), Included'.*'III, DDLCN-2 \(1-1\), Included'"
    ):
        find_published("III, DDLCN-2 (1-2), Included")

"""What `ddlcn reproduce` prints says the same as the page."""

import io

from rich.console import Console

from ddlcn.experiments.catalogue import parse_experiment
from ddlcn.experiments.store import Row
from ddlcn.report.console import print_experiment, print_experiments

TABLE = {
    "title": "Faces",
    "seeds": 3,
    "settings": {"dataset": "ar", "train_per_class": 20},
    "cells": [
        {"row": "(A-5)", "column": "depth 2", "atoms_per_class": 5, "published": 99.87, "bar": 99.0},
        {"row": "(A-5)", "column": "depth 3", "atoms_per_class": 5, "n_layers": 3},
        {"row": "errors", "column": "6 layers", "n_layers": 6, "measure": "approximation"},
    ],
}


def show(rows):
    experiment = parse_experiment("faces", TABLE)
    text = io.StringIO()
    print_experiment(experiment, rows, Console(file=text, width=150))
    return experiment, text.getvalue()


def test_ours_published_and_what_was_not_run():
    settings = [cell.settings for cell in parse_experiment("faces", TABLE).cells]
    rows = [Row(settings[0], seed, accuracy, 0.5, note="p = 3") for seed, accuracy in enumerate((0.99, 1.0))]
    rows.append(Row(settings[2], 0, errors=[0.2, 0.4]))
    _, text = show(rows)
    (first,) = [line for line in text.splitlines() if "depth 2" in line]
    for part in ("99.87", "99.50 ± 0.71", "50.00", "−0.37", ">= 99 reached", "2 of 3"):
        assert part in first
    (second,) = [line for line in text.splitlines() if "depth 3" in line]
    assert "not run" in second
    assert "the error rises" in text
    assert "note: p = 3" in text


def test_a_bar_may_be_about_the_mean_over_classes():
    table = {**TABLE, "cells": [{**TABLE["cells"][0], "published": 50.0, "bar": 60.0, "over": "classes"}]}
    experiment = parse_experiment("faces", table)
    rows = [Row(experiment.cells[0].settings, seed, 0.99, 0.55) for seed in range(3)]
    text = io.StringIO()
    print_experiment(experiment, rows, Console(file=text, width=150))
    (line,) = [line for line in text.getvalue().splitlines() if "(A-5)" in line]
    assert "+5.00" in line
    assert ">= 60 over classes short" in line


def test_the_list_names_data_and_runs():
    text = io.StringIO()
    print_experiments([parse_experiment("faces", TABLE)], Console(file=text, width=100))
    (line,) = [line for line in text.getvalue().splitlines() if "Faces" in line]
    assert "ar" in line
    assert "9" in line

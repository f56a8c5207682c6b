"""What is finished is never made again, not even after kill -9."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from ddlcn import cli
from ddlcn.experiments import runner
from ddlcn.experiments.catalogue import load_experiment
from ddlcn.experiments.runner import Task, carry_out, plan
from ddlcn.experiments.store import Store, read_rows
from tests.datasets import packing

TOML = """
title = "Digits"
seeds = 6
cells = [
  {{ row = "q = 3", column = "depth 1", atoms_per_class = 3, n_layers = 1 }},
  {{ row = "q = 3", column = "depth 2", atoms_per_class = 3, n_layers = 2 }},
  {{ row = "q = 4", column = "depth 1", atoms_per_class = 4, n_layers = 1 }},
]

[settings]
dataset = "{folder}"
train_per_class = 8
step = 4
"""


@pytest.fixture
def toml(tmp_path, digit_folder):
    path = tmp_path / "digits.toml"
    path.write_text(TOML.format(folder=digit_folder))
    return path


def test_a_plan_leaves_out_what_is_finished(toml, tmp_path):
    experiment, store = load_experiment(str(toml)), Store(tmp_path / "runs.sqlite")
    tasks = plan(experiment, store, 2)
    cells = [cell.settings for cell in experiment.cells]
    assert tasks == [Task(settings, seed) for seed in (0, 1) for settings in cells]
    rows = list(carry_out(tasks[:2], store))
    assert [(row.settings, row.seed) for row in rows] == tasks[:2]
    assert plan(experiment, store, 2) == tasks[2:]


def test_several_at_a_time_make_the_same_rows(toml, tmp_path):
    experiment = load_experiment(str(toml))
    found = []
    for n_jobs in (1, 2):
        store = Store(tmp_path / f"{n_jobs}" / "runs.sqlite")
        rows = carry_out(plan(experiment, store, 1), store, n_jobs)
        found.append(sorted((row.settings.make_key(row.seed), row.accuracy) for row in rows))
        assert len(list(store.rows())) == 3
    assert found[0] == found[1]


def test_killed_and_started_again_it_repeats_nothing(toml, tmp_path):
    results = tmp_path / "runs.sqlite"
    command = [sys.executable, "-m", "ddlcn", "reproduce", str(toml), "--results", str(results)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not results.exists() or len(read_rows(results)) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = {row.settings.make_key(row.seed): row for row in read_rows(results)}
    assert 3 <= len(before) < 18

    second = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0, second.stderr
    assert f"18 runs, {len(before)} of them already finished" in second.stderr
    after = {row.settings.make_key(row.seed): row for row in read_rows(results)}
    assert len(after) == 18
    assert all(after[key] == row for key, row in before.items())  # to the second they were finished in
    assert "6 of 6" in second.stdout


def test_rows_travel_as_lines_of_text(toml, tmp_path):
    command = [
        sys.executable,
        "-m",
        "ddlcn",
        "reproduce",
        str(toml),
        "--seeds",
        "1",
        "--rows",
        str(tmp_path / "rows"),
    ]
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        done = subprocess.run(command, cwd=tmp_path / place, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert "3 runs, 3 of them already finished" in done.stderr
    assert len(read_rows(tmp_path / "rows")) == 3
    shutil.rmtree(tmp_path / "rows")  # and come back from the results file, though nothing is left to run
    subprocess.run(command, cwd=tmp_path / "here", check=True, capture_output=True, timeout=300)
    assert len(read_rows(tmp_path / "rows")) == 3


@pytest.fixture
def made_up_runs(tmp_path, monkeypatch):
    """Omniglot, made up: the real runs are a test set, to be looked at once. Three runs of six characters."""
    packing.write_omniglot(tmp_path, runs=3, characters=6)
    packing.expect(monkeypatch, "omniglot", 18, 36)
    monkeypatch.setenv("DDLCN_DATA", str(tmp_path))
    runner._load.cache_clear()
    yield tmp_path
    runner._load.cache_clear()


def test_one_shot_is_quickly_reproduced(made_up_runs):
    results = made_up_runs / "runs.sqlite"
    result = CliRunner().invoke(cli.app, ["reproduce", "one-shot", "--quick", "--results", str(results)])
    assert result.exit_code == 0, result.output
    rows = read_rows(results)
    assert len(rows) == len(load_experiment("one-shot").cells) == 10
    assert {(row.seed, row.n_train, tuple(row.class_totals)) for row in rows} == {(0, 6, (1,) * 6)}
    assert all(row.class_names == [f"run01/class{c:02d}" for c in range(1, 7)] for row in rows)
    assert {row.accuracy > 0.5 for row in rows if row.settings.method in ("ddlcn fast", "LLC")} == {True}


def test_rows_of_several_runs_travel_as_text(made_up_runs):
    """Every run has its classes: a file of rows names those of each."""
    experiment = load_experiment("one-shot")
    store = Store(made_up_runs / "runs.sqlite")
    tasks = [task for task in plan(experiment, store, 3) if task.settings.method == "nearest neighbour"]
    rows = list(carry_out(tasks, store))
    store.write_lines(made_up_runs / "rows.jsonl")
    assert [row.class_names[0] for row in rows] == ["run01/class01", "run02/class01", "run03/class01"]
    assert sorted(read_rows(made_up_runs / "rows.jsonl"), key=lambda row: row.seed) == rows

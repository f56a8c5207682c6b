"""What is finished is never made again, not even after kill -9."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ddlcn.experiments.catalogue import load_experiment
from ddlcn.experiments.runner import Task, carry_out, plan
from ddlcn.experiments.store import Store, read_rows

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

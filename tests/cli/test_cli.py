"""The command line: quick to start, clear when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from ddlcn import __version__, cli
from ddlcn.workflows import demo


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli.app, list(arguments))


def test_help_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; from ddlcn import cli\n"
        "try: cli.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'numba', 'PIL') if m in sys.modules])"
    )
    begin = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert time.perf_counter() - begin < 3  # well under a second on a quiet machine
    assert out.strip().endswith("[]")
    assert "demo" in out


def test_version(run):
    assert run("--version").output.strip() == f"ddlcn {__version__}"


def test_info_names_versions_and_folders(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DDLCN_DATA", str(tmp_path))
    result = run("info")
    assert result.exit_code == 0
    assert "scikit-learn" in result.output
    assert str(tmp_path) in result.output.replace("\n", "")


def test_demo_prints_a_table_with_ddlcn_first(run):
    result = run("demo", "--seeds", "1")
    assert result.exit_code == 0
    rows = [line for line in result.output.splitlines() if "SVM" in line or "DDLCN" in line]
    assert "DDLCN" in rows[0]
    assert len(rows) == 3


def test_demo_needs_at_least_one_draw(run):
    assert run("demo", "--seeds", "0").exit_code == 2


def test_summary_of_the_demo():
    rows = [demo.DemoRow("a", s, accuracy, 1.0) for s, accuracy in enumerate((0.8, 0.9))]
    rows += [demo.DemoRow("b", 0, 0.95, 2.0)]
    (best, second) = demo.summarise(rows)
    assert best == ("b", 0.95, 0.0, 2.0)
    assert second[0] == "a"
    assert second[1:] == pytest.approx((0.85, 0.0707107, 1.0))


@pytest.mark.parametrize("error", [ValueError("beta is wrong"), OSError("disk is full")])
def test_a_mistake_is_one_line(monkeypatch, capsys, error):
    def fail():
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == f"ddlcn: {error}\n"


def test_an_unknown_command(run):
    assert run("traain").exit_code == 2


def test_experiments_are_listed(run):
    result = run("reproduce", "--list")
    assert result.exit_code == 0
    assert "yaleb" in result.output
    assert run("reproduce").output == result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "yale"], "no experiment is called 'yale': choose from yaleb"),
        (["reproduce", "ar"], "AR"),
        (["report", "none.sqlite"], "none.sqlite does not exist: run `ddlcn reproduce` first"),
    ],
)
def test_what_is_missing_is_one_line_and_exit_1(arguments, said, tmp_path):
    environment = {**os.environ, "DDLCN_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "ddlcn", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ddlcn: ")
    assert said in last
    assert "Traceback" not in done.stderr

"""`ddlcn check`: what it prints, what it writes, and that it touches nothing."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from ddlcn import cli


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli.app, [str(a) for a in arguments])


@pytest.fixture
def mixed(digit_folder, tmp_path):
    """Four digits, two of them in a wrong folder, one of them twice, and a file that is no picture."""
    for name in ("digit0", "digit1", "digit2", "digit4"):
        shutil.copytree(digit_folder / name, tmp_path / "mixed" / name)
    (tmp_path / "mixed/digit0/12.png").rename(tmp_path / "mixed/digit1/moved.png")
    (tmp_path / "mixed/digit4/12.png").rename(tmp_path / "mixed/digit2/moved.png")
    shutil.copy(tmp_path / "mixed/digit1/10.png", tmp_path / "mixed/digit4/twice.png")
    (tmp_path / "mixed/digit0/note.png").write_text("hello")
    return tmp_path / "mixed"


def test_everything_is_told_and_nothing_is_touched(run, mixed, tmp_path):
    before = sorted(mixed.rglob("*"))
    result = run("check", mixed, "--preset", "fast", "--html", tmp_path / "check.html")
    assert result.exit_code == 0
    assert sorted(mixed.rglob("*")) == before
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"\d+ pictures, 4 classes", lines[0])
    assert any("left out" in line and "note.png" in line for line in lines)
    assert any("near-duplicates in different classes" in line and "twice.png" in line for line in lines)
    assert any(re.fullmatch(r"\d+ pictures are probably in the wrong folder, \d+ more may be", line) for line in lines)
    doubtful = [line for line in lines if line.startswith("  ")]
    assert any("digit1/moved.png: in digit1" in line and "looks like digit0" in line for line in doubtful)
    assert any("digit2/moved.png: in digit2" in line and "looks like digit4" in line for line in doubtful)
    page = (tmp_path / "check.html").read_text()
    assert "moved.png,digit1,digit0" in page
    assert "<script" not in page


def test_as_json_and_against_pictures_for_tests(run, mixed, digit_folder, tmp_path):
    shutil.copytree(digit_folder / "digit1", tmp_path / "tested/digit1")
    shutil.copytree(digit_folder / "digit3", tmp_path / "tested/digit3")
    result = run("check", mixed, "--preset", "fast", "--against", tmp_path / "tested", "--json")
    found = json.loads(result.stdout)
    assert found["classes"] == ["digit0", "digit1", "digit2", "digit4"]
    assert {"path", "label", "looks_like", "probability", "own_probability", "sure"} == set(found["doubts"][0])
    also = {a for a, _ in found["also_tested"]}
    assert str(mixed / "digit1/11.png") in also
    assert not any("digit2" in path for path in also)
    assert [path for path, _ in found["left_out"]] == [str(mixed / "digit0/note.png")]


def test_too_little_to_check_is_one_sentence(run, digit_folder, tmp_path):
    shutil.copytree(digit_folder / "digit1", tmp_path / "one/digit1")
    result = run("check", tmp_path / "one")
    assert isinstance(result.exception, ValueError)
    assert "one class only" in str(result.exception)
    for name in ("digit0", "digit1", "digit2"):
        (tmp_path / "single" / name).mkdir(parents=True)
        shutil.copy(digit_folder / name / "10.png", tmp_path / "single" / name)
    assert "every class has a single picture: nothing can be said" in run("check", tmp_path / "single").stdout


def test_a_name_is_picked_without_a_script(run, mixed, tmp_path, browser):
    run("check", mixed, "--preset", "fast", "--html", tmp_path / "check.html")
    page = browser.new_page()
    page.goto((tmp_path / "check.html").as_uri())
    names = page.locator(".picked li")
    assert names.count() >= 2
    assert [names.nth(i).is_visible() for i in range(2)] == [False, False]
    page.locator(".doubts label").nth(1).click()
    assert [names.nth(i).is_visible() for i in range(2)] == [False, True]
    widths = np.array([page.locator(".doubts img").nth(i).evaluate("image => image.naturalWidth") for i in range(2)])
    assert (widths > 0).all()
    page.close()

"""What the README says, a stranger can do: its Python example runs on a real folder of pictures."""

from __future__ import annotations

import json
import re
import shlex
import urllib.request
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from ddlcn import cli

from .conftest import run_server

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def write_photos(folder: Path) -> None:
    """scikit-learn's digits 0, 1, 2 as PNG files in one folder per class, and one more beside them."""
    digits = load_digits()
    for kind in range(3):
        (folder / "photos" / f"digit{kind}").mkdir(parents=True)
        for i in np.flatnonzero(digits.target == kind)[:12]:
            picture = Image.fromarray(np.uint8(digits.images[i] * 15.9)).resize((48, 48))
            picture.save(folder / "photos" / f"digit{kind}" / f"{i}.png")
    Image.fromarray(np.uint8(digits.images[500] * 15.9)).resize((48, 48)).save(folder / "new.jpg")
    (folder / "photos" / "digit0" / "broken.jpg").write_bytes(b"not a picture")


def test_the_example_on_a_folder(tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    write_photos(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "model.ddlcn").exists()
    assert "digit" in capsys.readouterr().out


def test_the_journey_on_a_folder(tmp_path, monkeypatch, capsys):
    """Every command of the shell's journey, in its order, on real pictures; the server answers while it runs."""
    (journey,) = re.findall(r"```console\n(\$ ddlcn check.*?)```", README, re.DOTALL)
    commands = [shlex.split(line[2:], comments=True) for line in journey.splitlines()]
    assert [command[1] for command in commands] == [
        *("check", "train", "info", "predict", "predict", "explain", "evaluate", "compare", "add", "serve"),
    ]
    write_photos(tmp_path)
    digits = load_digits()
    for folder, kinds, which in (
        ("tested", range(3), slice(12, 18)),
        ("more", [3], slice(0, 8)),
        ("new", [1], slice(20, 22)),
    ):
        for kind in kinds:
            goal = tmp_path / folder / f"digit{kind}" if folder != "new" else tmp_path / folder
            goal.mkdir(parents=True)
            for i, image in enumerate(digits.images[digits.target == kind][which]):
                Image.fromarray(np.uint8(image * 15.9)).resize((48, 48)).save(
                    goal / f"{'ab'[i] if folder == 'new' else i}.png"
                )
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in commands[:-1]:
        result = CliRunner().invoke(cli.app, command[1:])
        assert result.exit_code == 0, (command, result.output)
        said[command[1]] = said.get(command[1], "") + result.stdout
    assert "probably in the wrong folder" in said["check"]
    assert "3-fold cross-validation" in said["train"]
    assert "patches of training images" in said["info"]
    assert said["predict"].startswith(f"{Path('new/a.png')}: digit1 ")
    assert "accuracy: " in said["evaluate"]
    assert "images per class" in said["compare"]
    assert "new classes: digit3" in said["add"]
    assert "Check" in (tmp_path / "check.html").read_text()
    for page in ("why.html", "page.html", "compare.html"):
        assert (tmp_path / page).stat().st_size > 10_000

    assert commands[-1] == ["ddlcn", "serve", "model.ddlcn", "--port", "8000"]
    with run_server(tmp_path / "model.ddlcn") as (address, _):  # at a port that is free
        health = json.loads(urllib.request.urlopen(f"{address}/health").read())
    assert health["classes"] == ["digit0", "digit1", "digit2", "digit3"]


def test_the_commands_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake (demo|test|bench|\w+)\b", README))
    assert {"demo", "test", "bench"} <= named <= targets


def test_short_and_with_pictures():
    assert len(README.split()) <= 900
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(pictures) >= 3
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 120_000, picture
        assert Image.open(ROOT / picture).width <= 1000, picture


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target

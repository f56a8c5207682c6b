"""The commands about a model of one's own."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ddlcn import cli, load_model


@pytest.fixture
def run():
    return lambda *arguments, **more: CliRunner().invoke(cli.app, [str(a) for a in arguments], **more)


def test_predict_a_file_and_a_folder(run, digit_model, digit_folder):
    result = run("predict", digit_model, digit_folder / "digit1" / "12.png", digit_folder / "digit0")
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert len(lines) == 17
    assert lines[0].startswith(f"{digit_folder / 'digit1' / '12.png'}: digit1 ")
    assert lines[0].endswith(" %")


def test_predict_as_json_and_csv(run, digit_model, digit_folder):
    names = [str(path) for path in sorted((digit_folder / "digit2").iterdir())[:3]]
    rows = [json.loads(line) for line in run("predict", digit_model, *names, "--json", "--top", 2).output.splitlines()]
    assert [row["path"] for row in rows] == names
    for row in rows:
        assert row["label"] == row["top"][0]["label"]
        assert len(row["top"]) == 2
        assert 1 >= row["top"][0]["probability"] >= row["top"][1]["probability"] >= 0
    listed = run("predict", digit_model, "-", "--csv", "--top", 2, input="\n".join(names)).output
    table = list(csv.DictReader(io.StringIO(listed)))
    assert [row["path"] for row in table] == names
    assert [row["label"] for row in table] == [row["label"] for row in rows]
    assert [float(row["probability2"]) for row in table] == [row["top"][1]["probability"] for row in rows]


def test_predict_says_what_it_cannot_read_and_goes_on(run, digit_model, digit_folder, tmp_path):
    bad, good = tmp_path / "page.jpg", digit_folder / "digit1" / "12.png"
    bad.write_text("<html>not a picture</html>")
    result = run("predict", digit_model, bad, good)
    assert result.exit_code == 1
    assert "page.jpg" in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout.startswith(f"{good}: digit1")
    first, second = map(json.loads, run("predict", digit_model, bad, good, "--json").stdout.splitlines())
    assert "not an image" in first["error"]
    assert second["label"] == "digit1"


def test_predict_rejects_what_it_does_not_know(run, digit_model, digit_folder):
    """The model has never seen a 4."""
    strange = [
        json.loads(s)
        for s in run("predict", digit_model, digit_folder / "digit4", "--json", "--reject").output.splitlines()
    ]
    own = [
        json.loads(s)
        for s in run("predict", digit_model, digit_folder / "digit0", "--json", "--reject").output.splitlines()
    ]
    assert sum(row["label"] is None for row in strange) > sum(row["label"] is None for row in own)
    assert all(row["known"] == (row["label"] is not None) for row in strange + own)
    assert "unknown (most like" in run("predict", digit_model, digit_folder / "digit4", "--reject").output


def test_train_on_a_folder(run, digit_folder, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(digit_folder, folder)
    shutil.copy(folder / "digit0" / "03.png", folder / "digit1" / "copy.png")
    (folder / "digit2" / "bad.jpg").write_text("hello")
    goal = tmp_path / "m.ddlcn"
    result = run("train", folder, "-o", goal, "--seed", 1)
    assert result.exit_code == 0
    assert result.stdout.startswith("81 pictures, 5 classes\naccuracy: ")
    assert "95 % interval" in result.stdout
    assert "3-fold cross-validation" in result.stdout
    assert f"wrote {goal}" in result.stdout
    assert "bad.jpg" in result.stderr
    assert "copy.png (digit1)" in result.stderr
    card = run("info", goal).output
    assert "digit1 (17)" in card
    assert "81 images, 3-fold cross-validation" in card
    assert "pictures inside: none" in card


def test_train_settings(run, digit_folder, tmp_path):
    goal = tmp_path / "m.ddlcn"
    arguments = ("--preset", "paper", "--layers", 1, "--atoms-per-class", 2, "--images-per-class", 6)
    result = run("train", digit_folder, "-o", goal, *arguments)
    assert "all but 6 images per class held out" in result.stdout
    model = load_model(goal)
    assert (model.n_layers, model.atoms_per_class, model.depth) == (1, 2, "augment")
    assert model.card_["images_per_class"] == [6] * 5


def test_train_says_what_is_wrong_in_a_line(digit_folder, tmp_path):
    for arguments in (
        [tmp_path / "absent"],
        [digit_folder, "--preset", "best"],
        [digit_folder, "-o", tmp_path / "no" / "m"],
    ):
        command = [sys.executable, "-m", "ddlcn", "train", *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 1
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("ddlcn: ")


def test_explain_writes_a_page(run, digit_model, digit_folder, tmp_path):
    result = run("explain", digit_model, digit_folder / "digit3" / "12.png", "-o", tmp_path / "why.html")
    assert result.output == f"wrote {tmp_path / 'why.html'}\n"
    assert "<h1>digit3" in (tmp_path / "why.html").read_text()


def test_evaluate_counts_and_writes_a_page(run, digit_model, digit_folder, tmp_path):
    folder = tmp_path / "new"
    shutil.copytree(digit_folder, folder)
    (folder / "digit1" / "bad.jpg").write_text("hello")
    result = run("evaluate", digit_model, folder, "--html", tmp_path / "page.html")
    assert result.exit_code == 0
    assert "of 64 images (95 % interval" in result.stdout
    assert "known against 16 images of unknown classes: area under the curve 0." in result.stdout
    assert "bad.jpg" in result.stderr
    assert "bad.jpg" in (tmp_path / "page.html").read_text()


def test_add_pictures_and_a_class(run, digit_folder, tmp_path):
    first, more = tmp_path / "first", tmp_path / "more"
    for digit in range(3):
        shutil.copytree(digit_folder / f"digit{digit}", first / f"digit{digit}")
    shutil.copytree(digit_folder / "digit3", more / "digit3")
    goal = tmp_path / "m.ddlcn"
    assert run("train", first, "-o", goal).exit_code == 0
    result = run("add", goal, more, "-o", tmp_path / "n.ddlcn")
    assert result.output.startswith("added 16 pictures, new classes: digit3; wrote")
    assert load_model(goal).classes_.tolist() == ["digit0", "digit1", "digit2"]
    assert run("predict", tmp_path / "n.ddlcn", more / "digit3" / "04.png").output.count("digit3 ") == 1
    assert "not tested since" not in run("info", goal).output
    grown = run("add", goal, more, "--grow", first)
    assert grown.exit_code == 0
    assert len(load_model(goal).atom_labels_) > len(load_model(tmp_path / "n.ddlcn").atom_labels_)


def test_compare_prints_a_table_and_writes_a_page(run, digit_folder, tmp_path):
    folder = tmp_path / "two"
    for digit in range(2):
        shutil.copytree(digit_folder / f"digit{digit}", folder / f"digit{digit}")
    methods = "linear SVM on pixels,nearest neighbour on pixels"
    result = run("compare", folder, "--html", tmp_path / "c.html", "--draws", 2, "--methods", methods)
    assert result.exit_code == 0
    assert "32 pictures, 2 classes, 2 draws" in result.stdout
    assert "With 10 images per class" in result.stdout
    page = (tmp_path / "c.html").read_text()
    assert "<svg" in page
    assert page.count("<tr>") == 9  # a heading, and two methods at four sizes

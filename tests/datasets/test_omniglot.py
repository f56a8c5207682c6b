"""The runs of Omniglot: which drawing is of which run, class and side; and what is wrong with a file of labels."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

from ddlcn.datasets import load_dataset
from ddlcn.datasets.catalogue import CATALOGUE
from tests.datasets import packing


@pytest.fixture
def files(monkeypatch):
    packing.expect(monkeypatch, "omniglot", 6, 12)
    return packing.omniglot_files(runs=2, characters=3, side=28)


def open_files(root, files):
    packing.write_zip(root / "omniglot/all_runs.zip", files)
    return load_dataset("omniglot", root)


def test_runs_classes_and_sides(tmp_path, files):
    data = open_files(tmp_path, files)
    assert data.class_names == tuple(f"run{run:02d}/class{c:02d}" for run in (1, 2) for c in (1, 2, 3))
    np.testing.assert_array_equal(data.labels, np.repeat(np.arange(6), 2))
    np.testing.assert_array_equal(data.runs, np.repeat([0, 1], 6))
    np.testing.assert_array_equal(data.is_test, ["/test/" in name for name in data.image_names])
    # Test item i of run r shows character (i + r) mod 3.
    found = {name: data.class_names[label] for name, label in zip(data.image_names, data.labels, strict=True)}
    assert found["run01/test/item01.png"] == "run01/class02"
    assert found["run02/test/item01.png"] == "run02/class03"
    assert found["run02/training/class03.png"] == "run02/class03"
    assert repr(data) == "Dataset('omniglot', 12 images, 6 of them for testing, 6 classes, 2 runs)"


def test_a_run_without_labels_is_named(tmp_path, files):
    del files["run02/class_labels.txt"]
    with pytest.raises(ValueError, match=r"all_runs\.zip holds no run02/class_labels\.txt, which says what"):
        open_files(tmp_path, files)


@pytest.mark.parametrize(
    "line",
    [
        "run01/test/item99.png run01/training/class01.png",
        "run01/test/item02.png run01/training/class99.png",
        "run01/test/item02.png run02/training/class01.png",
        "run01/test/item02.png run01/test/item01.png",
        "run01/test/item01.png run01/training/class01.png",
        "run01/training/class01.png run01/training/class01.png",
        "run01/test/item02.png",
        "nonsense, of three words",
    ],
)
def test_labels_that_name_what_is_not_there_are_told(tmp_path, files, line):
    lines = files["run01/class_labels.txt"].decode().splitlines()
    files["run01/class_labels.txt"] = "\n".join([lines[0], line, *lines[2:]]).encode()
    wanted = f"run01/class_labels.txt, line 2, {line!r}, does not name a test drawing"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        open_files(tmp_path, files)


def test_a_test_drawing_without_a_label_is_named(tmp_path, files):
    lines = files["run01/class_labels.txt"].decode().splitlines()
    files["run01/class_labels.txt"] = "\n".join([lines[0], "", lines[2]]).encode()
    with pytest.raises(ValueError, match="class_labels.txt, does not say what run01/test/item02.png shows"):
        open_files(tmp_path, files)


def test_one_half_of_the_background_is_not_enough(tmp_path, monkeypatch):
    packing.expect(monkeypatch, "omniglot-background", 9, 18)
    packing.write_background(tmp_path)
    data = load_dataset("omniglot-background", tmp_path)
    assert data.class_names[0] == "Early_Aramaic/character01"
    assert {name.split("/")[0] for name in data.class_names} == {"Early_Aramaic", "Greek", "Japanese_(katakana)"}
    assert (data.is_test, data.runs) == (None, None)
    (tmp_path / "omniglot/images_background_small2.zip").unlink()
    wanted = "omniglot/images_background_small2 is not under .*Run ddlcn data fetch omniglot-background"
    with pytest.raises(FileNotFoundError, match=wanted):
        load_dataset("omniglot-background", tmp_path)


@pytest.mark.data
def test_the_real_runs_have_twenty_drawings_of_each_side(data_root):
    data = load_dataset("omniglot", data_root)
    assert (len(data), len(data.class_names)) == (800, 400)
    np.testing.assert_array_equal(np.unique(data.runs), np.arange(20))
    for run in range(20):
        part = data.take(data.runs == run)
        assert part.class_names == tuple(f"run{run + 1:02d}/class{c:02d}" for c in range(1, 21))
        for side in (False, True):  # each character once: every file of labels is a bijection
            assert sorted(part.labels[part.is_test == side]) == list(range(20))


@pytest.mark.data
def test_the_real_alphabets_that_are_in_both_background_sets_are_the_same(data_root):
    from ddlcn.datasets.archive import match_files
    from ddlcn.datasets.omniglot import _BACKGROUND, _DRAWING
    from ddlcn.datasets.root import find_source

    record = CATALOGUE["omniglot-background"]
    parts = []
    for name in _BACKGROUND:
        matches = match_files(find_source(record, data_root, name), _DRAWING)
        parts.append({match[0]: hashlib.sha256(file.read_bytes()).hexdigest() for match, file in matches})
    both = parts[0].keys() & parts[1].keys()
    assert {name.split("/")[1] for name in both} == {"Greek", "Latin"}
    assert all(parts[0][name] == parts[1][name] for name in both)
    assert len(parts[0].keys() | parts[1].keys()) == len(load_dataset("omniglot-background", data_root)) == 4840

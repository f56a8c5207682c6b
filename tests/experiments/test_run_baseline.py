"""Other methods in the same table: same splits, their own numbers, and a limit on their time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from ddlcn.baselines.registry import make_method
from ddlcn.datasets import load_dataset
from ddlcn.experiments import run_baseline
from ddlcn.experiments.catalogue import leave_out_missing, load_experiment
from ddlcn.experiments.protocol import draw_split, draw_unlabelled
from ddlcn.experiments.run_baseline import run_method
from ddlcn.experiments.runner import carry_out, plan
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Store
from ddlcn.utils.time_limit import OverBudget, limit_time
from tests.datasets import packing

PIXELS = (("kind", "pixels"), ("side", 8))


@pytest.fixture(scope="module")
def digits(digit_folder):
    return load_dataset(digit_folder)


def test_a_row_says_what_the_method_does_on_that_split(digits):
    settings = Settings(digits.name, 5, method="nearest neighbour", vectors=PIXELS)
    row = run_method(digits, settings, seed=1)
    split = draw_split(settings, digits.labels, None, 1)
    by_hand = make_method("nearest neighbour", 1, features="pixels")
    from ddlcn.baselines.inputs import Pixels

    rows = Pixels(8).transform(digits.images)
    by_hand.fit(rows[split.train], digits.labels[split.train])
    right = by_hand.predict(rows[split.test]) == digits.labels[split.test]
    assert row.accuracy == pytest.approx(right.mean())
    assert sum(times for _, _, times in row.mistakes) == (~right).sum()
    assert row.n_train == 25
    assert row.seconds_per_image >= row.seconds_to_classify > 0
    assert row.fit_seconds > 0


def test_vectors_are_made_once(digits):
    kept = {}

    def recall(name, make):
        if name not in kept:
            kept[name] = make()
        return kept[name]

    rows = [
        run_method(digits, Settings(digits.name, 5, method=method, vectors=PIXELS), 0, recall=recall)
        for method in ("CRC", "linear SVM")
    ]
    assert len(kept) == 2  # the vectors, and what they cost
    alone = run_method(digits, Settings(digits.name, 5, method="linear SVM", vectors=PIXELS), 0)
    assert rows[1].accuracy == alone.accuracy


def test_a_pyramid_has_the_descriptors_of_the_settings(digits):
    pyramid = (("kind", "pyramid"), ("n_atoms", 8))
    kept = {}

    def recall(name, make):
        if name not in kept:
            kept[name] = make()
        return kept[name]

    for patch in (8, 12):
        settings = Settings(digits.name, 5, method="CRC", vectors=pyramid, patch_size=(patch,), step=4)
        assert run_method(digits, settings, 0, recall=recall).accuracy > 0.5
    assert len(kept) == 4  # other descriptors, other vectors


def test_a_part_of_the_test_images(digits):
    settings = Settings(digits.name, 5, method="CRC", vectors=PIXELS, n_test=10)
    split = draw_split(settings, digits.labels, None, 0)
    assert np.bincount(digits.labels[split.test]).tolist() == [2] * 5
    whole = draw_split(Settings(digits.name, 5), digits.labels, None, 0)
    assert set(split.test) <= set(whole.test)
    assert np.array_equal(split.train, whole.train)
    row = run_method(digits, settings, 0)
    assert row.mistakes == []
    assert round(row.accuracy * 10) == pytest.approx(row.accuracy * 10)


def test_descriptors_and_atoms_are_those_of_the_settings(digits):
    settings = Settings(digits.name, 5, method="LLC", patch_size=(8,), step=4, options=(("n_atoms", 16),))
    options = run_baseline._list_options(settings)
    assert options["features"].patch_size == 8
    assert "atoms_per_class" not in options
    assert run_baseline._list_options(Settings("x", 5, method="KSVD", atoms_per_class=3))["atoms_per_class"] == 3
    ours = run_baseline._list_options(Settings("x", 5, method="ddlcn fast", max_side=200))["features"]
    assert (ours.patch_size, ours.step, ours.max_side, ours.min_side) == (24, 6, 200, 96)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two made-up runs of Omniglot, four characters each."""
    packing.write_omniglot(tmp_path, side=28)
    packing.expect(monkeypatch, "omniglot", 8, 16)
    return load_dataset("omniglot", tmp_path)


def test_a_seed_picks_a_run_of_the_distribution(runs, monkeypatch):
    kept, decoded = {}, []
    decode = run_baseline.Decoded._decode
    monkeypatch.setattr(
        run_baseline.Decoded, "_decode", lambda self, i: decoded.append(self.named[i][0]) or decode(self, i)
    )

    def recall(name, make):
        if name not in kept:
            kept[name] = make()
        return kept[name]

    for seed in (0, 1):
        part = runs.take(runs.runs == seed)
        for method in ("nearest neighbour", "linear SVM"):
            row = run_method(runs, Settings("omniglot", method=method, vectors=PIXELS), seed, recall=recall)
            assert row.class_names == [f"run{seed + 1:02d}/class{c:02d}" for c in (1, 2, 3, 4)]
            assert (row.n_train, row.class_totals) == (4, [1, 1, 1, 1])
            assert row.accuracy == 1.0  # made-up drawings differ little; with another run's labels it would be 0
        assert row.data == replace(part, runs=None).identity
    assert len(kept) == 4  # vectors and their cost, of each run
    assert sorted(decoded) == sorted(runs.image_names)  # both methods see what the first has read
    with pytest.raises(ValueError, match="'omniglot' has 2 runs"):
        run_method(runs, Settings("omniglot", method="CRC", vectors=PIXELS), 2)


class Slow:
    def fit(self, images, y):
        time.sleep(5.0)


def test_a_fit_over_the_budget_is_a_row_that_says_so(digits, monkeypatch):
    monkeypatch.setattr(run_baseline, "BUDGET", 0.1)
    monkeypatch.setattr(run_baseline, "make_method", lambda *_, **__: Slow())
    row = run_method(digits, Settings(digits.name, 5, method="CRC", vectors=PIXELS), 0)
    assert row.accuracy is None
    assert row.note.startswith("over budget")


class Diverging:
    def fit(self, images, y):
        raise np.linalg.LinAlgError("SVD did not converge")


def test_a_method_that_gives_up_is_a_row_that_says_so(digits, monkeypatch):
    monkeypatch.setattr(run_baseline, "make_method", lambda *_, **__: Diverging())
    row = run_method(digits, Settings(digits.name, 5, method="CRC", vectors=PIXELS), 0)
    assert row.accuracy is None
    assert row.note == "failed: SVD did not converge"


def test_the_limit_is_gone_afterwards():
    with pytest.raises(OverBudget), limit_time(0.05):
        time.sleep(2.0)
    with limit_time(0.1):
        pass
    time.sleep(0.2)


SWEEP = """
title = "Contest"
kind = "contest"
x = "train_per_class"
seeds = 1

[[sweeps]]
row = "{{dataset}}"
column = "{{method}}"
vectors = {{ kind = "pixels", side = 8 }}

[sweeps.each]
dataset = ["{folder}"]
train_per_class = [2, 5]
method = ["CRC", "linear SVM", "nearest neighbour"]
"""


def test_a_sweep_is_run_from_a_file(digit_folder, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SWEEP.format(folder=digit_folder))
    experiment, store = load_experiment(str(path)), Store(tmp_path / "runs.sqlite")
    assert [(cell.column, cell.settings.train_per_class) for cell in experiment.cells][:4] == [
        ("CRC", 2),
        ("linear SVM", 2),
        ("nearest neighbour", 2),
        ("CRC", 5),
    ]
    rows = list(carry_out(plan(experiment, store), store))
    assert len(rows) == 6
    assert all(row.accuracy > 0.5 for row in rows if row.settings.train_per_class == 5)
    assert plan(experiment, store) == []


def test_networks_see_colours_and_their_time_is_not_that_of_an_earlier_run(tmp_path, monkeypatch):
    """Red and blue noise: told apart in colour only. What an earlier run described is described, and timed, again."""
    pytest.importorskip("onnxruntime")
    from ddlcn.descriptors import ConvMap
    from ddlcn.descriptors.pretrained import has_networks

    if not has_networks():
        pytest.skip("ddlcn[cnn] is not installed")
    rng = np.random.default_rng(0)
    for i in range(12):
        picture = rng.integers(0, 120, (40, 48, 3))
        picture[..., 2 * (i % 2)] += 100
        folder = tmp_path / "noise" / ("red", "blue")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{i}.png")
    data = load_dataset(tmp_path / "noise")
    extracted = []
    extract, pause = ConvMap.extract, 0.003

    def count(self, image, name="image"):
        extracted.append(name)
        time.sleep(pause)
        return extract(self, image, name=name)

    monkeypatch.setattr(ConvMap, "extract", count)
    ours = Settings(data.name, 3, method="ddlcn cnn")
    for settings in (
        ours, ours, Settings(data.name, 3, method="linear SVM", vectors=(("kind", "cnn"), ("sides", (64,)))),
    ):  # fmt: skip
        row = run_method(data, settings, seed=0)
        assert row.accuracy == 1.0
        assert row.seconds_per_image > pause
    n_train, n_test = 6, 6  # each once, and the test images once more against the clock
    assert len(extracted) == 3 * (n_train + 2 * n_test)


def test_without_networks_their_cells_are_left_out(monkeypatch):
    monkeypatch.setattr("ddlcn.descriptors.pretrained.find_spec", lambda name: None)
    kept, missing = leave_out_missing(load_experiment("pretrained"))
    assert {cell.settings.method for cell in kept.cells} == {"ddlcn fast", "ddlcn accurate"}
    assert "ddlcn cnn" in missing
    assert "linear SVM" in missing


def test_images_without_labels_are_training_images_that_are_not_trained_with(digits, monkeypatch):
    is_test = np.arange(len(digits.labels)) % 2 == 1
    data, given = replace(digits, is_test=is_test), {}

    def make(name, seed, n_jobs=None, unlabelled=None, **options):
        given["images"] = unlabelled
        return make_method("nearest neighbour", seed, n_jobs, **options)

    monkeypatch.setattr(run_baseline, "make_method", make)
    settings = Settings(data.name, 2, method="Embed CNN", options=(("unlabelled", 11),))
    run_method(data, settings, 0)
    split = draw_split(settings, data.labels, is_test, 0)
    pictures = [np.asarray(Image.open(path)) for path in data.images]
    found = [next(i for i, each in enumerate(pictures) if np.array_equal(each, one)) for one in given["images"]]
    assert len(set(found)) == 11
    assert not set(found) & set(split.train.tolist())
    assert not is_test[found].any()
    assert len(draw_unlabelled(10**6, split, is_test, 0)) == (~is_test).sum() - len(split.train)
    assert len(draw_unlabelled(5, split, None, 0)) == 0

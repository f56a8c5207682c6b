"""A run is the method, whole: both accuracies, times, a seed that decides; deeper layers are what the method says."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ddlcn.blocks import CodedBlock, Encoding, SingleBranch, make_augmented_block
from ddlcn.coding import encode_layers, path_weights
from ddlcn.coding.locality import LocalityCoder
from ddlcn.datasets import load_dataset
from ddlcn.descriptors import DenseSIFT
from ddlcn.experiments.measure import note_accuracy
from ddlcn.experiments.run import prepare_trial, run_settings
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.images import name_images
from ddlcn.joint import JointConfig, choose
from tests.datasets import packing


@pytest.fixture(scope="module")
def data(digit_folder):
    return load_dataset(str(digit_folder))


def make(digit_folder, **changes):
    return Settings(str(digit_folder), **{"train_per_class": 8, "atoms_per_class": 4, "step": 4, **changes})


def encode(items, block, pyramid):
    return Encoding([SingleBranch(DenseSIFT(step=4), block, pyramid)], [1.0]).transform(items, 1)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_augmented_depth_reweighs_the_features_of_one_layer(data, power):
    rng = np.random.default_rng(0)
    layers = [rng.normal(size=(size, 128)).astype(np.float32) for size in (30, 12, 5)]
    items, pyramid, ones = list(name_images(data.images[:20])), (1, 2), np.ones(30)
    plain = encode(items, CodedBlock(LocalityCoder(layers[0], 0.1, 7, 1e-6), ones, ones, pyramid, power), pyramid)
    n_cells = 1 + 4
    for depth in (1, 2, 3):
        how = ((0.1,) * depth, (7,) * depth)
        found = encode(items, make_augmented_block(layers[:depth], *how, pyramid, power), pyramid)
        P, N = path_weights(encode_layers(layers[:depth], *how, 1e-6, 1), 30, power)
        expected = plain.toarray() * np.sqrt(np.concatenate([np.tile(P, n_cells), np.tile(N, n_cells)]))
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    assert N.any()


@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_row_says_what_was_done(data, digit_folder, n_layers):
    settings = make(digit_folder, n_layers=n_layers)
    row = run_settings(data, settings, 0)
    assert (row.settings, row.seed) == (settings, 0)
    wrong = sum(count for _, _, count in row.mistakes)
    assert row.accuracy == pytest.approx(1 - wrong / sum(row.class_totals))
    assert row.accuracy > 0.8
    assert row.class_totals == [8] * 5
    assert row.n_train == 40
    assert row.fit_seconds > 0
    assert 0 < row.seconds_to_classify <= row.seconds_to_code < row.seconds_per_image
    assert row.peak_memory_mb > 10
    assert "ddlcn" in row.versions


def test_both_accuracies():
    y_true, y_pred = np.array([0] * 10 + [1] * 2), np.array([0] * 9 + [1] + [0, 1])
    row = note_accuracy(Row(Settings("x"), 0), y_true, y_pred, 2)
    assert row.accuracy == pytest.approx(10 / 12)
    assert row.balanced_accuracy == pytest.approx((0.9 + 0.5) / 2)
    assert row.mistakes == [[0, 1, 1], [1, 0, 1]]
    assert row.class_totals == [10, 2]


def test_the_seed_decides_and_threads_do_not(data, digit_folder):
    def run(seed, n_jobs):
        row = run_settings(data, make(digit_folder, train_per_class=2), seed, n_jobs)
        return row.accuracy, row.mistakes

    assert run(0, 1) == run(0, 2)
    assert any(run(0, 1) != run(seed, 1) for seed in (1, 2, 3))


def test_joint_training_that_was_stopped_goes_on_at_its_epoch(data, digit_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "CANDIDATES", (JointConfig(3),))
    monkeypatch.setattr(choose, "is_surely_better", lambda a, b: True)
    settings, told = make(digit_folder, n_layers=1, atoms_per_class=1, joint=True), []
    whole = run_settings(data, settings, 0, 1, told.append)
    assert sum("epoch 3 of 3" in line for line in told) == 1 + (len(whole.epochs) == 3)  # the trial, and the training

    def stop(line):
        told.append(line)
        if "epoch 2" in line:
            raise KeyboardInterrupt

    folder = tmp_path / "epochs" / "run"
    with pytest.raises(KeyboardInterrupt):
        run_settings(data, settings, 0, 1, stop, folder)
    told.clear()
    again = run_settings(data, settings, 0, 1, told.append, folder)
    assert (again.epochs, again.mistakes, again.note) == (whole.epochs, whole.mistakes, whole.note)
    assert not any("trying" in line and "epoch 2" in line for line in told)
    assert not folder.exists()


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize(
    "changes",
    [{"coder": "llc", "n_neighbors": 5}, {"layer": "filters"}, {"n_neighbors": None}, {"depth": "published-code"}],
)
def test_other_coders_recognise_too(data, digit_folder, changes, n_layers):
    assert run_settings(data, make(digit_folder, n_layers=n_layers, **changes), 0).accuracy > 0.7


def test_residual_depth(data, digit_folder):
    settings = make(digit_folder, depth="residual", atoms_per_class=1, n_neighbors=5, beta=0.05, deep_atoms=(8,))
    row = run_settings(data, settings, 0)
    assert row.accuracy > run_settings(data, replace(settings, deep_atoms=(), n_layers=1), 0).accuracy
    assert 0 < row.seconds_to_classify <= row.seconds_to_code < row.seconds_per_image
    deep = replace(settings, measure="approximation", deep_atoms=(8, 8, 8), n_layers=4)
    assert all(below < above for above, below in pairwise(run_settings(data, deep, 0).errors))


def test_more_dictionary_images_than_there_are_means_all(data, digit_folder):
    row = run_settings(data, make(digit_folder), 0)
    more = run_settings(data, make(digit_folder, dictionary_images=20), 0)
    assert "p = 8" in more.note
    assert (row.accuracy, row.mistakes) == (more.accuracy, more.mistakes)


def test_approximation_by_layer(data, digit_folder):
    row = run_settings(data, make(digit_folder, measure="approximation", n_layers=3), 0)
    assert row.accuracy is None
    assert len(row.errors) == 3
    assert all(0 < error < 2 for error in row.errors)


def test_a_seed_picks_a_run_of_the_distribution(tmp_path, monkeypatch):
    packing.write_omniglot(tmp_path, side=56)
    packing.expect(monkeypatch, "omniglot", 8, 16)
    data, settings = load_dataset("omniglot", tmp_path), Settings("omniglot", atoms_per_class=4)
    for seed in (0, 1):
        row = run_settings(data, settings, seed)
        assert row.class_names == [f"run{seed + 1:02d}/class{c:02d}" for c in (1, 2, 3, 4)]
        assert (row.n_train, row.class_totals, row.accuracy) == (4, [1, 1, 1, 1], 1.0)
        trial = prepare_trial(data, settings, seed)
        assert {item.name.split("/")[0] for item in trial.items} == {f"run{seed + 1:02d}"}
    assert row.data != run_settings(data, settings, 0).data
    with pytest.raises(ValueError, match="'omniglot' has 2 runs"):
        run_settings(data, settings, 2)

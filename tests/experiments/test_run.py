"""A run is the method, whole: the same features as the network's, both accuracies, and a seed that decides."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ddlcn.coding import encode_layers, path_weights
from ddlcn.coding.locality import LocalityCoder
from ddlcn.datasets import load_dataset
from ddlcn.experiments.run import run_depths
from ddlcn.experiments.settings import Settings
from ddlcn.features import DenseSIFT
from ddlcn.network import ForwardPass, Network
from ddlcn.pooling import reweigh


@pytest.fixture(scope="module")
def data(digit_folder):
    return load_dataset(str(digit_folder))


def make(digit_folder, **changes):
    return Settings(str(digit_folder), **{"train_per_class": 8, "atoms_per_class": 4, "step": 4, **changes})


def test_features_of_all_depths_from_one_pass(data):
    rng = np.random.default_rng(0)
    layers = [rng.normal(size=(size, 128)).astype(np.float32) for size in (30, 12, 5)]
    features, named = DenseSIFT(step=4), list(zip(data.image_names, data.images, strict=True))[:20]
    ones = np.ones(30)
    for power in (1.0, 0.5):
        coder = LocalityCoder(layers[0], 0.1, 7, 1e-6)
        plain = ForwardPass(features, coder, ones, ones, (1, 2), power, "auto").transform(named, 1)
        for depth in (1, 2, 3):
            how = ("augment", None, features, (0.1,) * depth, (7,) * depth, (1, 2), power, "auto")
            network = Network(layers[:depth], *how)
            P, N = path_weights(encode_layers(layers[:depth], (0.1,) * depth, (7,) * depth, 1e-6, 1), 30, power)
            found = reweigh(plain, np.sqrt(P), np.sqrt(N))
            assert abs(found - network.transform(named, 1)).max() < 1e-6
    assert N.any()


def test_rows_say_what_was_done(data, digit_folder):
    rows = list(run_depths(data, make(digit_folder), (1, 2), 0))
    assert [row.settings.n_layers for row in rows] == [1, 2]
    for row in rows:
        wrong = sum(count for _, _, count in row.mistakes)
        assert row.accuracy == pytest.approx(1 - wrong / sum(row.class_totals))
        assert row.accuracy > 0.8
        assert row.class_totals == [8] * 5
        assert row.n_train == 40
        assert 0 < row.seconds_to_classify < row.seconds_per_image
        assert row.peak_memory_mb > 10
        assert "ddlcn" in row.versions


def test_the_seed_decides_and_threads_do_not(data, digit_folder):
    def run(seed, n_jobs):
        (row,) = run_depths(data, make(digit_folder, train_per_class=2), (2,), seed, n_jobs)
        return row.accuracy, row.mistakes

    assert run(0, 1) == run(0, 2)
    assert any(run(0, 1) != run(seed, 1) for seed in (1, 2, 3))


def test_depth_alone_or_with_others_is_the_same(data, digit_folder):
    (alone,) = run_depths(data, make(digit_folder), (3,), 0)
    together = list(run_depths(data, make(digit_folder), (1, 2, 3), 0))[-1]
    assert (alone.accuracy, alone.mistakes) == (together.accuracy, together.mistakes)


@pytest.mark.parametrize("changes", [{"coder": "llc", "n_neighbors": 5}, {"layer": "filters"}, {"n_neighbors": None}])
def test_other_coders_recognise_too(data, digit_folder, changes):
    for row in run_depths(data, make(digit_folder, **changes), (1, 2), 0):
        assert row.accuracy > 0.7


def test_residual_depth(data, digit_folder):
    settings = make(digit_folder, depth="residual", atoms_per_class=1, n_neighbors=5, beta=0.05, deep_atoms=(8,))
    (row,) = run_depths(data, settings, (2,), 0)
    (plain,) = run_depths(data, replace(settings, deep_atoms=()), (1,), 0)
    assert row.accuracy > plain.accuracy
    assert 0 < row.seconds_to_classify < row.seconds_per_image
    (errors,) = run_depths(data, replace(settings, measure="approximation", deep_atoms=(8, 8, 8)), (4,), 0)
    assert all(below < above for above, below in pairwise(errors.errors))


def test_dictionaries_are_recalled(data, digit_folder):
    kept = {}

    def recall(name, make_array):
        return kept[name] if name in kept else kept.setdefault(name, make_array())

    first = list(run_depths(data, make(digit_folder), (1,), 0, recall=recall))
    again = list(run_depths(data, make(digit_folder, n_neighbors=5), (1,), 0, recall=recall))
    (same,) = run_depths(data, make(digit_folder, dictionary_images=20), (1,), 0, recall=recall)  # more than there are
    assert len(kept) == 1
    assert first[0].settings != again[0].settings
    assert "p = 8" in same.note
    list(run_depths(data, make(digit_folder), (1,), 1, recall=recall))
    assert len(kept) == 2


def test_approximation_by_layer(data, digit_folder):
    (row,) = run_depths(data, make(digit_folder, measure="approximation"), (3,), 0)
    assert row.accuracy is None
    assert len(row.errors) == 3
    assert all(0 < error < 2 for error in row.errors)

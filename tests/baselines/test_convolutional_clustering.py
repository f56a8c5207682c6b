"""Convolutional clustering: k-means on shifted windows is what slow loops say, connections learn, and it recognises."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.baselines import ConvolutionalClustering
from ddlcn.baselines.convolutional_filters import (
    Scaling,
    cut_patches,
    draw_windows,
    learn_connections,
    learn_filters,
    pool_cells,
    pool_pairs,
    rectify,
)

SMALL = {"n_filters": (8, 8), "n_windows": (400, 200), "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def maps():
    """Smooth random maps (6, 20, 17, 2)."""
    noise = np.random.default_rng(0).random((6, 22, 19, 2))
    return sum(noise[:, i : i + 20, j : j + 17] for i in range(3) for j in range(3)).astype(np.float32) / 9


def test_patches_are_those_of_a_slow_loop(maps):
    patches = cut_patches(maps, 5)
    assert patches.shape == (6, 16, 13, 50)
    for n, y, x in [(0, 0, 0), (3, 7, 12), (5, 15, 4)]:
        slow = np.concatenate([maps[n, y : y + 5, x : x + 5, c].ravel() for c in range(2)])
        np.testing.assert_array_equal(patches[n, y, x], slow)


def test_windows_come_from_the_maps(maps):
    windows = draw_windows(maps, 6, 30, np.random.default_rng(0))
    assert windows.shape == (30, 6, 6, 2)
    everything = {bytes(row) for row in cut_patches(maps, 6).reshape(-1, 72)}
    assert all(bytes(row) in everything for row in cut_patches(windows, 6).reshape(-1, 72))


def test_scaled_patches_have_no_mean_and_whitened_ones_no_correlation(maps):
    patches = cut_patches(maps[..., :1], 3).reshape(-1, 9)
    scaled = Scaling.learn(patches, whiten=False).apply(patches)
    np.testing.assert_allclose(scaled.mean(axis=1), 0, atol=1e-5)
    assert (scaled.var(axis=1) < 1).all()
    spread = [np.linalg.eigvalsh(np.cov(rows.T))[1:] for rows in (scaled, Scaling.learn(patches, True).apply(patches))]
    assert spread[1].max() / spread[1].min() < 0.5 * spread[0].max() / spread[0].min()
    assert spread[1].max() <= 1.01


def test_the_objective_of_k_means_rises_and_is_that_of_a_slow_loop(maps):
    windows = draw_windows(maps, 8, 60, np.random.default_rng(1))
    places = cut_patches(windows, 4).reshape(60, 25, -1)
    places = Scaling.learn(places[:, 0], whiten=False).apply(places)
    filters, objective = learn_filters(places, 5, 12, np.random.default_rng(2))
    np.testing.assert_allclose(np.linalg.norm(filters, axis=1), 1, atol=1e-5)
    assert (np.diff(objective) >= -1e-4 * objective[-1]).all()
    assert objective[-1] > 1.05 * objective[0]
    before, _ = learn_filters(places, 5, 11, np.random.default_rng(2))
    slow = np.mean([max((float(d @ patch)) ** 2 for d in before for patch in window) for window in places])
    assert slow == pytest.approx(objective[-1], rel=1e-4)


def test_one_shifted_pattern_takes_one_filter():
    """Windows with one bar at any place: convolutional k-means needs one filter for it, plain k-means several."""
    rng = np.random.default_rng(0)
    windows = np.zeros((300, 10, 10, 1), np.float32)
    for window, column in zip(windows, rng.integers(2, 8, 300), strict=True):
        window[:, column] = 1.0
    patches = cut_patches(windows, 3).reshape(300, 64, 9)
    patches -= patches.mean(axis=2, keepdims=True)
    assert objective_share(patches, rng) > 0.999
    assert objective_share(patches[:, 4:5], rng) < 0.7


def objective_share(patches, rng):
    """What one filter captures of the largest patch of every window."""
    _, objective = learn_filters(patches, 1, 20, rng)
    return objective[-1] / np.square(patches).sum(axis=2).max(axis=1).mean()


def test_pooling_is_that_of_a_slow_loop(maps):
    cells = pool_cells(maps, 3)
    assert cells.shape == (6, 3, 3, 2)
    np.testing.assert_array_equal(cells[:, 1, 2], maps[:, 6:13, 11:17].max(axis=(1, 2)))
    np.testing.assert_array_equal(pool_cells(maps[:, :2], 3)[:, 1, 0], maps[:, 1, :5].max(axis=1))
    np.testing.assert_array_equal(pool_pairs(maps)[:, 3, 7], maps[:, 6:8, 14:16].max(axis=(1, 2)))


def test_rectified_answers():
    answers = np.array([[3.0, -1.0, 1.0], [0.0, 0.0, 0.0]], np.float32)
    np.testing.assert_array_equal(rectify(answers, None), np.maximum(answers, 0))
    np.testing.assert_allclose(rectify(answers, 0.0), [[2, 0, 0], [0, 0, 0]])
    assert rectify(answers, 0.5)[0, 0] == pytest.approx(2 - 0.5 * answers[0].std())


def test_connections_find_the_map_that_tells_the_classes_apart():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    cells = rng.random((600, 2, 2, 6)).astype(np.float32)
    cells[..., 4] += y[:, None, None]
    start = np.eye(6, dtype=np.float32)[[0, 1, 2, 3]]  # map 4 is not connected
    learned = learn_connections(cells, y, start, rng)
    np.testing.assert_allclose(np.linalg.norm(learned, axis=1), 1, atol=1e-5)
    others = np.abs(learned - start)
    others[:, 4] = 0
    assert np.abs(learned[:, 4]).min() > 0.2
    assert np.abs(learned[:, 4]).mean() > 2 * others[:, [0, 1, 2, 3, 5]].mean()


@pytest.mark.parametrize("options", [{}, {"connections": "random"}, {"threshold": None}, {"window_scale": 1}])
def test_it_recognises_stripes(stripes, options):
    images, labels = stripes
    model = ConvolutionalClustering(**SMALL, **options).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) >= 0.9
    assert len(model.objectives_) == 1 + len(model.connections_) // 4
    assert model.filters_.shape == (8, 7, 7)


def test_flat_pictures_and_groups_that_do_not_divide():
    flat = np.full((4, 20, 20), 0.5)
    model = ConvolutionalClustering(**SMALL).fit(flat, [0, 0, 1, 1])
    assert np.isfinite(model.decision_function(flat)).all()
    options = {**SMALL, "n_filters": (7, 5)}
    images = np.random.default_rng(0).random((6, 20, 24))
    model = ConvolutionalClustering(**options, group_size=3, image_shape=None).fit(images, list("aabbcc"))
    assert model.connections_.shape == (9, 7)
    assert model.coef_.shape[0] == 3


def test_pictures_that_are_too_small_are_refused():
    with pytest.raises(ValueError, match="need pictures of 16 pixels a side; got 12 x 40"):
        ConvolutionalClustering(image_shape=(12, 40)).fit(np.zeros((2, 12, 40)), [0, 1])

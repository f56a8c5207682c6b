"""PCANet: filters are the eigenvectors, codes, histograms and distances are what slow loops say, and it recognises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from ddlcn.baselines import pcanet_filters
from ddlcn.baselines.pcanet import PCANet, measure_chi2
from ddlcn.baselines.pcanet_filters import Grid, apply_filters, count_codes, find_starts, learn_filters


@pytest.fixture(scope="module")
def pictures():
    """Smooth random pictures (20, 21, 26): neighbouring pixels are alike, as in photographs."""
    rng = np.random.default_rng(0)
    noise = rng.random((20, 25, 30))
    smooth = sum(noise[:, i : i + 21, j : j + 26] for i in range(5) for j in range(5)) / 25
    return smooth.astype(np.float32)


def centred_patches(maps, size):
    """All patches (n, size^2) without their means, one by one."""
    patches = [
        picture[y : y + size, x : x + size].ravel()
        for picture in maps
        for y in range(picture.shape[0] - size + 1)
        for x in range(picture.shape[1] - size + 1)
    ]
    patches = np.array(patches, np.float64)
    return patches - patches.mean(axis=1, keepdims=True)


def slow_responses(picture, filters):
    """Responses (n, H, W), pixel by pixel, in float64."""
    k = filters.shape[1]
    padded = np.pad(picture.astype(np.float64), k // 2)
    height, width = picture.shape
    out = np.empty((len(filters), height, width))
    for f, weights in enumerate(filters.astype(np.float64)):
        for y in range(height):
            for x in range(width):
                out[f, y, x] = (weights * padded[y : y + k, x : x + k]).sum()
    return out


@pytest.mark.parametrize("size", [3, 5])
def test_filters_are_leading_eigenvectors_of_each_stage(pictures, size):
    first, second = learn_filters(pictures, (4, 3), size)
    maps = pictures
    for bank in (first, second):
        rows = bank.reshape(len(bank), -1).astype(np.float64)
        np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-5)
        np.testing.assert_allclose(rows.sum(axis=1), 0, atol=1e-5)  # blind to the mean of a patch
        patches = centred_patches(maps, size)
        covariance = patches.T @ patches
        values = np.sort(np.linalg.eigvalsh(covariance))[::-1][: len(rows)]
        np.testing.assert_allclose(rows @ covariance, values[:, None] * rows, atol=2e-5 * values[0])
        maps = np.concatenate([slow_responses(picture, first) for picture in pictures])


def test_responses_equal_a_slow_loop(pictures):
    filters = np.random.default_rng(1).normal(size=(3, 5, 5)).astype(np.float32)
    slow = np.concatenate([slow_responses(picture, filters) for picture in pictures[:2]])
    np.testing.assert_allclose(apply_filters(pictures[:2], filters), slow, atol=1e-4)


@pytest.mark.parametrize("n_stages", [1, 2])
@pytest.mark.parametrize(("block", "overlap"), [((4, 6), 0.0), ((7, 7), 0.5), ((21, 26), 0.0)])
def test_histograms_equal_a_slow_loop(pictures, n_stages, block, overlap):
    filters = learn_filters(pictures, (3, 4)[:n_stages], 3)
    net = PCANet(n_stages, block_size=block, overlap=overlap)
    grid = net._place_blocks(pictures.shape[1:])
    fast = count_codes(pictures[:3], filters, grid).toarray()
    for picture, row in zip(pictures[:3], fast, strict=True):
        maps = picture[None] if n_stages == 1 else apply_filters(picture[None], filters[0])
        slow = []
        for one in maps:
            bits = slow_responses(one, filters[-1]) > pcanet_filters.FLAT
            codes = sum(2**f * bit.astype(int) for f, bit in enumerate(bits))
            for top in grid.tops:
                for left in grid.lefts:
                    inside = codes[top : top + block[0], left : left + block[1]].ravel()
                    slow.append(np.bincount(inside, minlength=2 ** len(bits)))
        # A response within rounding of the threshold may fall on either side: one pixel moves from one bin to another.
        assert np.abs(row - np.concatenate(slow)).sum() <= 2
    n_maps = len(filters[0]) if n_stages == 2 else 1
    np.testing.assert_array_equal(fast.sum(axis=1), n_maps * grid.n_blocks * block[0] * block[1])


@pytest.mark.parametrize(
    ("side", "block", "overlap"), [(192, 8, 0.0), (28, 7, 0.5), (30, 8, 0.0), (9, 9, 0.9), (5, 2, 0.4)]
)
def test_blocks_lie_within_the_picture_and_lose_both_borders_alike(side, block, overlap):
    starts = find_starts(side, block, overlap)
    lost_before, lost_after = starts[0], side - block - starts[-1]
    assert 0 <= lost_before <= lost_after <= lost_before + 1
    assert lost_before + lost_after < max(1, round((1 - overlap) * block))  # else one more block would fit
    assert len(set(np.diff(starts))) <= 1


def test_chi_square_distances_equal_a_slow_version(pictures):
    filters = learn_filters(pictures, (3, 4), 3)
    features = count_codes(pictures, filters, Grid(np.array([0, 9]), np.array([2, 12]), 9, 10))
    dense = features.toarray().astype(np.float64)
    total = dense[:6, None] + dense[None, 6:]
    slow = ((dense[:6, None] - dense[None, 6:]) ** 2 / np.where(total > 0, total, 1)).sum(axis=2)
    fast = measure_chi2(features[:6], np.ascontiguousarray(dense[6:].T.astype(np.uint8)), 16)
    np.testing.assert_allclose(fast, slow, rtol=1e-5)


@pytest.mark.parametrize("classifier", ["svm", "chi2"])
@pytest.mark.parametrize("n_stages", [1, 2])
def test_recognises_stripes(stripes, classifier, n_stages):
    images, labels = stripes
    model = PCANet(n_stages, classifier=classifier, block_size=16).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) >= 0.95
    two = labels != "along"
    model = clone(model).fit(images[:30][two[:30]], labels[:30][two[:30]])
    assert model.decision_function(images[30:]).shape == (30,)
    assert model.score(images[30:][two[30:]], labels[30:][two[30:]]) >= 0.95


@pytest.mark.parametrize("classifier", ["svm", "chi2"])
def test_batches_threads_and_pickling_change_nothing(stripes, classifier, monkeypatch):
    images, labels = stripes
    model = PCANet(classifier=classifier, n_jobs=1).fit(images, labels)
    scores = model.decision_function(images)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(images), scores)
    np.testing.assert_array_equal(
        clone(model).set_params(n_jobs=2).fit(images, labels).decision_function(images), scores
    )
    filters = model.filters_
    monkeypatch.setattr(pcanet_filters, "BATCH", 7)
    model.set_params(n_jobs=2).fit(images, labels)
    for before, after in zip(filters, model.filters_, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-5)
    # The filters differ by rounding, so some pixel's code may too: the scores hardly.
    np.testing.assert_allclose(model.decision_function(images), scores, atol=1e-2 * np.abs(scores).max())


def test_a_training_picture_is_its_own_nearest_neighbour(pictures):
    model = PCANet(classifier="chi2").fit(pictures, np.arange(20))
    scores = model.decision_function(pictures)
    np.testing.assert_allclose(np.diag(scores), 0, atol=1e-2)
    np.testing.assert_array_equal(model.predict(pictures), np.arange(20))


@pytest.mark.parametrize("classifier", ["svm", "chi2"])
def test_constant_pictures_have_code_zero(classifier):
    flat = np.full((4, 16, 16), 0.7, np.float32)
    model = PCANet(1, classifier=classifier, n_filters=12, filter_size=3).fit(flat, [0, 0, 1, 1])
    assert model.filters_[0].shape == (8, 3, 3)  # no more than patches without mean have dimensions
    inner = count_codes(flat, model.filters_, Grid(np.array([4]), np.array([4]), 8, 8)).toarray()
    np.testing.assert_array_equal(inner[:, 0], 64)
    assert np.isfinite(model.decision_function(flat)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_stages": 3}, "n_stages"),
        ({"filter_size": 4}, "filter_size"),
        ({"filter_size": 101}, "filter_size"),
        ({"n_filters": 13}, "n_filters"),
        ({"n_filters": (8, 8, 8)}, "n_filters"),
        ({"overlap": 1.0}, "overlap"),
        ({"block_size": (8, 8, 8)}, "block_size"),
        ({"classifier": "forest"}, "classifier"),
        ({"C": 0}, "C must be"),
    ],
)
def test_wrong_arguments_are_named(stripes, wrong, message):
    with pytest.raises(ValueError, match=message):
        PCANet(**wrong).fit(*stripes)

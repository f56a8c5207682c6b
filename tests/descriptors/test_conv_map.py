"""Descriptors from a network's map: whitened, of unit norm, in their places, whatever was kept."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxruntime")
from ddlcn import DDLCNClassifier
from ddlcn.descriptors import ConvMap, conv_map, resolve_descriptors
from ddlcn.images.colour import read_colours
from tests.descriptors.pretrained.tiny import N_CHANNELS, convolve, write_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("network") / "tiny.onnx")


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (40, 64, 3)).astype(np.uint8) for _ in range(6)]


def make(tiny, **how):
    return ConvMap(tiny, **{"sides": (32, 48), "n_components": 4, **how})


def test_a_descriptor_is_a_whitened_column_of_the_map(tiny, pictures):
    maps = make(tiny, sides=(32,), whitening=0.2).fit(pictures)
    (described,) = maps.transform(pictures[:1])
    (seen,), proportion = read_colours(pictures[0], ((32, 32),))
    X = convolve(seen.astype(float)).reshape(N_CHANNELS, -1).T
    Y = (X - maps.mean_) @ maps.basis_
    np.testing.assert_allclose(described.values, Y / np.linalg.norm(Y, axis=1, keepdims=True), atol=2e-2)  # halves
    assert proportion == pytest.approx(1.6)
    assert described.image_shape == (20, 32)


@pytest.mark.parametrize(("whitening", "power"), [(0.5, 0.0), (0.0, 1.0), (0.25, 0.5)])
def test_whitening_raises_variances_to_what_is_left_of_their_power(tiny, pictures, whitening, power):
    maps = make(tiny, whitening=whitening).fit(pictures)
    X = np.concatenate([maps.extract(picture).content.values.astype(np.float64) for picture in pictures])
    Y = (X - maps.mean_) @ maps.basis_
    eigenvalues = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:4]
    np.testing.assert_allclose(np.cov(Y.T, bias=True), np.diag(eigenvalues**power), atol=1e-3 * eigenvalues[0] ** power)


def test_positions_of_all_sizes_cover_the_picture_evenly(tiny, pictures):
    (described,) = make(tiny).fit(pictures).transform(pictures[:1])
    assert len(described) == 8 * 8 + 12 * 12
    assert described.image_shape == (30, 48)
    for part, n in ((slice(0, 64), 8), (slice(64, None), 12)):
        xy = described.xy[part]
        np.testing.assert_allclose(xy.mean(axis=0), [23.5, 14.5])
        np.testing.assert_allclose(np.unique(np.diff(np.unique(xy[:, 0].round(3)))), 48 / n, rtol=1e-3)
    assert np.linalg.norm(described.values, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_whole_is_the_mean_of_the_responses(tiny, pictures):
    maps = make(tiny).fit(pictures)
    described, responses = maps.describe(pictures[0]), maps.respond(pictures[0])
    assert responses.shape == (len(described), N_CHANNELS) == (208, maps.n_responses_)
    np.testing.assert_allclose(responses.mean(axis=0), described.whole, rtol=1e-5)
    mean, whole = maps.average(pictures[0])
    np.testing.assert_allclose(mean, whole, rtol=1e-2)  # of this network the responses are the map, in halves


def test_threads_and_files_change_nothing(tiny, pictures, tmp_path):
    paths = []
    for i, picture in enumerate(pictures):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(picture).save(paths[-1])
    maps = make(tiny).fit(paths)
    first, again = maps.transform(paths), maps.transform(paths)
    arrays = make(tiny, n_jobs=1).fit(pictures).transform(pictures)
    for a, b, c in zip(first, again, arrays, strict=True):
        for other in (b, c):
            np.testing.assert_array_equal(a.values, other.values)
            np.testing.assert_array_equal(a.whole, other.whole)

    Image.fromarray(255 - pictures[0]).save(paths[0])  # a file that changed is looked at anew
    assert not np.array_equal(maps.describe(paths[0]).values, first[0].values)


def test_a_network_of_fixed_size_sees_that_size(tmp_path, pictures):
    maps = ConvMap(write_tiny(tmp_path / "fixed.onnx", side=16, n_images=1), n_components=4).fit(pictures)
    assert len(maps.describe(pictures[0])) == 16


def test_grey_transparent_and_coloured_pictures_are_all_seen(tiny, pictures):
    maps = make(tiny).fit(pictures)
    grey = pictures[0][..., 0]
    np.testing.assert_array_equal(maps.describe(grey).values, maps.describe(np.stack([grey] * 3, axis=2)).values)
    clear = np.dstack([pictures[0], np.zeros((40, 64), np.uint8)])  # nothing but the white page
    np.testing.assert_array_equal(maps.describe(clear).values, maps.describe(np.full((40, 64), 255, np.uint8)).values)
    np.testing.assert_array_equal(
        maps.describe(pictures[0] / 255).values, maps.describe(Image.fromarray(pictures[0])).values
    )


def test_what_is_drawn_has_the_shape_that_positions_refer_to(tiny, pictures):
    maps = make(tiny).fit(pictures)
    grey = maps.read(pictures[0])
    assert grey.shape == maps.describe(pictures[0]).image_shape
    assert 0 <= grey.min() < grey.max() <= 1


@pytest.mark.parametrize(
    ("how", "message"),
    [({"sides": ()}, "sides is empty"), ({"whitening": 0.7}, "more than 0.5"), ({"sides": (8,)}, "sides"),
     ({"n_components": 0}, "n_components"), ({"layer": "none"}, "no layer 'none'")],
)  # fmt: skip
def test_wrong_parameters_are_named(tiny, pictures, how, message):
    with pytest.raises(ValueError, match=message):
        make(tiny, **how).fit(pictures)


def test_pictures_of_one_colour_cannot_be_whitened(tiny):
    with pytest.raises(ValueError, match="same response everywhere"):
        make(tiny).fit([np.full((32, 32), 255, np.uint8)] * 2)


def test_names_mean_maps(tmp_path):
    assert resolve_descriptors("cnn").network == "efficientnet-lite0"
    assert resolve_descriptors("onnx:some/net.onnx").network == "some/net.onnx"
    for wrong in ("onnx:", "surf", 3):
        with pytest.raises(ValueError, match="features must be 'sift', 'cnn'"):
            resolve_descriptors(wrong)


def test_fit_uses_the_threads_it_is_given(tiny, pictures, monkeypatch):
    asked = []
    real = conv_map.map_threads
    monkeypatch.setattr(conv_map, "map_threads", lambda work, items, n: asked.append(n) or real(work, items, n))
    make(tiny, n_jobs=1).fit(pictures)
    DDLCNClassifier(make(tiny), n_layers=1, atoms_per_class=1, n_jobs=1).fit(pictures, np.arange(len(pictures)) % 2)
    assert set(asked) == {1}

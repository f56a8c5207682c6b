"""Images to vectors: shapes, lengths, what they do not see, and what counts as a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ddlcn.baselines.inputs import (
    HOG,
    INPUTS,
    Eigenfaces,
    Pixels,
    RandomFaces,
    find_components,
    is_matrix,
    make_input,
    read_stack,
)


@pytest.fixture(scope="module")
def pictures():
    return np.random.default_rng(0).random((12, 20, 16)) * 0.5


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "pyramid"])
def test_rows_are_images_and_repeat(name, pictures):
    pytest.importorskip("skimage") if name == "hog" else None
    first, again = (make_input(name, 3).fit(pictures[:8]).transform(pictures) for _ in range(2))
    assert first.shape[0] == 12
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, again)
    one_by_one = np.concatenate([make_input(name, 3).fit(pictures[:8]).transform(pictures[i : i + 1]) for i in (0, 5)])
    np.testing.assert_allclose(one_by_one, first[[0, 5]], atol=1e-6)
    if name != "hog":
        np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0)


def test_pixels_do_not_see_brightness(pictures):
    first, second = Pixels(8).transform([pictures[0], pictures[0] * 0.5 + 0.3])
    np.testing.assert_allclose(first, second, atol=1e-5)
    as_they_are = Pixels((10, 8), centred=False).transform(pictures)
    assert as_they_are.shape == (12, 80)
    assert as_they_are.min() >= 0.0


def test_random_faces_keep_angles(pictures):
    rows = RandomFaces(2000, random_state=0).fit(pictures).transform(pictures)
    flat = pictures.reshape(12, -1)
    flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose(rows @ rows.T, flat @ flat.T, atol=0.05)
    other = RandomFaces(2000, random_state=1).fit(pictures).transform(pictures)
    assert np.abs(rows - other).max() > 0.01


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_components_are_those_of_the_covariance(shape):
    X = np.random.default_rng(1).normal(size=shape)
    mean, components = find_components(X, 3)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    np.testing.assert_allclose(components @ components.T, np.eye(3), atol=1e-9)
    _, _, slow = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(np.sum(components * slow[:3], axis=1)), 1.0, atol=1e-9)


def test_no_more_components_than_pictures_give(pictures):
    assert Eigenfaces(300).fit(pictures[:5]).transform(pictures).shape == (12, 4)  # five points span four dimensions


def test_pictures_of_other_sizes_are_resized(pictures):
    large = np.asarray(Image.fromarray(pictures[0].astype(np.float32)).resize((32, 40)))
    stack = read_stack([pictures[0], np.clip(large, 0, 1)], (20, 16))
    assert stack.shape == (2, 20, 16)
    assert np.abs(stack[0] - stack[1]).mean() < 0.1
    assert RandomFaces(5).fit(pictures).transform([np.clip(large, 0, 1)]).shape == (1, 5)


def test_what_is_a_matrix(pictures):
    assert is_matrix(np.zeros((3, 4)))
    assert is_matrix([[0.0, 1.0], [2.0, 3.0]])
    assert is_matrix([np.zeros(4), np.ones(4)])
    assert not is_matrix(pictures)
    assert not is_matrix(list(pictures))
    assert not is_matrix(["a.png", "b.png"])
    assert not is_matrix([])


def test_wrong_inputs_are_said():
    with pytest.raises(ValueError, match="features must be one of"):
        make_input("colours", 0)
    with pytest.raises(ValueError, match="transformer of images"):
        make_input(3, 0)


def test_hog_sees_no_brightness(pictures):
    pytest.importorskip("skimage")
    first, second = HOG().transform([pictures[0], pictures[0] * 0.5 + 0.2])
    np.testing.assert_allclose(first, second, atol=1e-3)

"""Dense colour: against a slow obvious version, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

from ddlcn import DDLCNClassifier, DenseColour, DenseSIFT, load_model
from ddlcn.descriptors.dense_colour import describe_colours
from ddlcn.images.colour import read_colour_values

RNG = np.random.default_rng(0)
FLOWER = RNG.random((50, 44, 3)).astype(np.float32)


def describe_slowly(colours, patch, step):
    """docs/method.md word for word: one patch and one cell at a time."""
    height, width, _ = colours.shape
    r, g, b = (colours[..., i].astype(float) for i in range(3))
    channels = np.stack([4 * (r - g) / 2, 4 * (r + g - 2 * b) / 4, (r + g + b) / 3 - 0.5], axis=-1)
    edges = np.round(np.arange(5) * patch / 4).astype(int)
    found = []
    for top in range(((height - patch) % step) // 2, height - patch + 1, step):
        for left in range(((width - patch) % step) // 2, width - patch + 1, step):
            inside, vector = channels[top : top + patch, left : left + patch], []
            for y in range(4):
                for x in range(4):
                    cell = inside[edges[y] : edges[y + 1], edges[x] : edges[x + 1]].reshape(-1, 3)
                    vector += [*cell.mean(axis=0), *cell.std(axis=0)]
            found.append(np.array(vector) / max(np.linalg.norm(vector), 0.05))
    return np.array(found)


@pytest.mark.parametrize(("patch", "step"), [(16, 8), (18, 5), (44, 3)])
def test_the_slow_version_agrees(patch, step):
    np.testing.assert_allclose(
        describe_colours(FLOWER, (patch,), step).values, describe_slowly(FLOWER, patch, step), atol=2e-6
    )


def test_patches_lie_where_those_of_sift_lie():
    picture = (255 * FLOWER).astype(np.uint8)
    sizes = {"patch_size": (16, 24), "step": 6, "max_side": 48, "min_side": 40}
    colour, sift = DenseColour(**sizes).describe(picture), DenseSIFT(**sizes).describe(picture)
    np.testing.assert_array_equal(colour.xy, sift.xy)
    np.testing.assert_array_equal(colour.sizes, sift.sizes)
    assert colour.image_shape == sift.image_shape
    assert DenseColour(**sizes).read(picture).shape == colour.image_shape


def test_unit_norm_but_for_even_grey():
    norms = np.linalg.norm(DenseColour().describe(FLOWER).values, axis=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-6)
    even = DenseColour().describe(np.full((30, 30), 0.5)).values
    assert np.linalg.norm(even, axis=1).max() < 0.2  # 8 bits have no exact middle


def test_a_grey_picture_has_light_and_no_colour():
    grey = RNG.random((40, 40))
    values = DenseColour().describe(grey).values.reshape(-1, 16, 6)
    np.testing.assert_allclose(values[:, :, [0, 1, 3, 4]], 0.0, atol=1e-6)
    assert values[:, :, [2, 5]].any()


def test_files_arrays_and_threads_are_alike(tmp_path):
    picture = (255 * FLOWER).astype(np.uint8)
    Image.fromarray(picture).save(tmp_path / "a.png")
    describe = DenseColour(patch_size=16, min_side=64)
    expected = describe.transform([picture, picture[::-1]])
    found = clone(describe).set_params(n_jobs=2).transform([tmp_path / "a.png", Image.fromarray(picture[::-1])])
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def test_colours_are_sized_as_grey_values_are():
    assert read_colour_values(FLOWER, max_side=25).shape == (25, 22, 3)
    assert read_colour_values(FLOWER, min_side=88).shape == (100, 88, 3)
    np.testing.assert_allclose(read_colour_values(FLOWER), FLOWER, atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize("wrong", [{"patch_size": 3}, {"patch_size": ()}, {"max_side": 10}, {"step": 0}])
def test_wrong_parameters_are_found_before_any_image_is_read(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DDLCNClassifier(DenseColour(**wrong)).fit(["missing.png", "absent.png"], [0, 1])


def test_things_that_differ_by_colour_alone_are_told_apart(tmp_path):
    """Red and green squares on the same noise, of equal grey."""
    rng = np.random.default_rng(1)
    images, labels = [], []
    for i in range(24):
        picture = np.repeat(rng.uniform(0.3, 0.7, (40, 40, 1)), 3, axis=2)
        y, x = rng.integers(2, 18, 2)
        picture[y : y + 20, x : x + 20] = (0.6, 0.25, 0.3) if i % 2 else (0.25, 0.428, 0.3)
        images.append(picture)
        labels.append(("green", "red")[i % 2])
    one = DDLCNClassifier(DenseColour(), shared_atoms=20, n_layers=1, random_state=0).fit(images[:8], labels[:8])
    assert one.score(images[8:], labels[8:]) == 1.0
    one.save(tmp_path / "m.ddlcn")
    found = load_model(tmp_path / "m.ddlcn")
    np.testing.assert_array_equal(found.decision_function(images), one.decision_function(images))
    assert one.explain(images[9]).contributions.shape[0] == len(DenseColour().describe(images[9]))

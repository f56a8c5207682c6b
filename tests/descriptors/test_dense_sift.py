"""Dense SIFT: the kernel against a slow obvious version, against the reference, and what must not matter."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from ddlcn.descriptors import DenseSIFT, Descriptors
from ddlcn.descriptors.dense import place_grid
from ddlcn.images import ImageReadError

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def golden_sift():
    """The reference implementation's output: DDLCN_GOLDEN, else ../shared/golden beside the checkout."""
    folder = os.environ.get("DDLCN_GOLDEN") or Path(__file__).parents[3] / "shared" / "golden"
    path = Path(folder) / "dense_sift_reference.npz"
    if not path.exists():
        if os.environ.get("DDLCN_REQUIRE_DATA") == "1":
            pytest.fail(f"{path} is absent and DDLCN_REQUIRE_DATA=1")
        pytest.skip(f"{path} is absent")
    with np.load(path) as archive:
        return dict(archive)


def slow_sift(image: np.ndarray, patch: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """docs/method.md word for word, in float64: angles, 2-D filters, one patch and one cell at a time."""
    height, width = image.shape
    offsets = np.arange(-2, 3)
    gaussian = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * 0.8**2))
    filter_y, filter_x = (kernel * 2 / np.abs(kernel).sum() for kernel in np.gradient(gaussian))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image.astype(float), 2), (5, 5))
    gradient_x, gradient_y = (windows * filter_x).sum((2, 3)), (windows * filter_y).sum((2, 3))
    magnitude, theta = np.hypot(gradient_x, gradient_y), np.arctan2(gradient_y, gradient_x)
    angles = np.arange(8) * np.pi / 4
    responses = np.maximum(np.cos(theta[..., None] - angles), 0) ** 9 * magnitude[..., None]  # (H, W, 8)

    pixels = np.arange(patch)
    centres = [patch / 8 * (2 * i + 1) - 0.5 for i in range(4)]
    weights = [np.maximum(0, 1 - np.abs(pixels - centre) / (patch / 4)) for centre in centres]
    values, xy = [], []
    for top in range(((height - patch) % step) // 2, height - patch + 1, step):
        for left in range(((width - patch) % step) // 2, width - patch + 1, step):
            inside = responses[top : top + patch, left : left + patch]
            descriptor = np.concatenate([
                np.einsum("y,x,yxo->o", weights[row], weights[column], inside)
                for column in range(4) for row in range(4)
            ])  # fmt: skip
            norm = np.linalg.norm(descriptor)
            if norm >= 1:
                descriptor = np.minimum(descriptor / norm, 0.2)
                descriptor /= np.linalg.norm(descriptor)
            else:
                descriptor = np.minimum(descriptor, 0.2)
            values.append(descriptor)
            xy.append((left + (patch - 1) / 2, top + (patch - 1) / 2))
    return np.array(values), np.array(xy)


def textured(height: int, width: int, contrast: float = 1.0) -> np.ndarray:
    """Noise from 0 to `contrast`, the same in every run. (H, W)"""
    noise = np.random.default_rng([height, width]).random((height, width))
    return (contrast * noise).astype(np.float32)


@pytest.mark.data
def test_agrees_with_the_reference_implementation(golden_sift):
    cases = [key.removesuffix("_sift") for key in golden_sift if key.endswith("_sift")]
    assert len(cases) == 4
    for case in cases:
        name, step, patch = case.split("_")
        extractor = DenseSIFT(patch_size=int(patch[1:]), step=int(step[1:]))
        (found,) = extractor.transform([golden_sift[f"image_{name}"]])
        np.testing.assert_array_equal(found.xy, golden_sift[f"{case}_xy"])
        np.testing.assert_allclose(found.values, golden_sift[f"{case}_sift"], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("height", "width", "patch", "step"), [
    (16, 16, 16, 6), (40, 53, 16, 6), (37, 22, 12, 5), (31, 30, 9, 7), (20, 33, 4, 3), (21, 19, 5, 2),
    (17, 50, 17, 1), (45, 29, 13, 40), (30, 41, 24, 4), (23, 23, 7, 4), (16, 300, 16, 6), (40, 40, 33, 3),
])  # fmt: skip
@pytest.mark.parametrize("contrast", [1.0, 0.02])
def test_agrees_with_the_slow_version(height, width, patch, step, contrast):
    image = textured(height, width, contrast)
    (found,) = DenseSIFT(patch_size=patch, step=step).transform([image])
    values, xy = slow_sift(image, patch, step)
    np.testing.assert_array_equal(found.xy, xy)
    np.testing.assert_allclose(found.values, values, atol=1e-5)
    assert found.values.dtype == found.xy.dtype == np.float32
    assert found.image_shape == (height, width)


def test_both_branches_of_the_normalisation_are_seen():
    high = DenseSIFT().describe(textured(40, 40)).values
    low = DenseSIFT().describe(textured(40, 40, 0.01)).values
    np.testing.assert_allclose(np.linalg.norm(high, axis=1), 1, atol=1e-6)
    assert (np.linalg.norm(low, axis=1) < 1).all()
    assert low.max() <= np.float32(0.2)


def test_flat_and_nearly_flat_images_give_small_numbers_not_nan():
    for level in (0.0, 1e-38, 1e-30, 1e-15, 1e-12, 0.5, 1.0):
        found = DenseSIFT().describe(np.full((60, 60), level, np.float32))
        assert np.isfinite(found.values).all()
        inner = ((found.xy > 12) & (found.xy < 47)).all(axis=1)  # beyond, patches see the zeros around it
        assert inner.sum() >= 16
        assert found.values[inner].max() < 1e-5


def test_brightness_and_contrast_do_not_matter_inside_a_textured_image():
    image = 0.2 + 0.3 * textured(70, 70)
    base = DenseSIFT().describe(image)
    inner = ((base.xy > 12) & (base.xy < 57)).all(axis=1)  # beyond, patches see the zeros around it
    assert inner.sum() > 9
    for changed in (image + 0.3, image * 1.5):
        np.testing.assert_allclose(DenseSIFT().describe(changed).values[inner], base.values[inner], atol=1e-4)


def test_mirroring_permutes_cells_and_orientations():
    image = textured(40, 40)
    base, mirrored = DenseSIFT(), DenseSIFT().describe(image[:, ::-1]).values
    side = len(place_grid(40, 16, 6))
    blocks = base.describe(image).values.reshape(side, side, 4, 4, 8)  # row, column, cell column, cell row, angle
    flipped = blocks[:, ::-1, ::-1][..., (4 - np.arange(8)) % 8].reshape(-1, 128)
    np.testing.assert_allclose(mirrored, flipped, atol=1e-5)


@pytest.mark.parametrize("side", range(16, 40))
def test_grid_is_centred_and_inside(side):
    starts = place_grid(side, 16, 6)
    before, after = starts[0], side - (starts[-1] + 16)
    assert 0 <= before <= after <= before + 1
    assert after < 6


def test_several_patch_sizes_are_the_single_ones_stacked():
    image = textured(60, 45)
    together = DenseSIFT(patch_size=(12, 16, 24), step=4).describe(image)
    apart = [DenseSIFT(patch_size=size, step=4).describe(image) for size in (12, 16, 24)]
    np.testing.assert_array_equal(together.values, np.concatenate([one.values for one in apart]))
    np.testing.assert_array_equal(together.xy, np.concatenate([one.xy for one in apart]))
    assert len(together) == sum(map(len, apart))


@pytest.mark.parametrize("shape", [(1, 1), (3, 90), (1, 500), (15, 16), (4000, 2)])
def test_no_image_is_too_small(shape):
    found = DenseSIFT(patch_size=(16, 24)).describe(RNG.random(shape))
    assert len(found) >= 2
    assert min(found.image_shape) >= 24
    assert max(found.image_shape) <= 300
    assert np.isfinite(found.values).all()


def test_image_shape_and_positions_follow_the_resizing():
    large, small = DenseSIFT().transform([textured(400, 600), textured(20, 28)])
    assert (large.image_shape, small.image_shape) == ((200, 300), (20, 28))
    assert len(large) == 48 * 31
    enlarged = DenseSIFT(min_side=60).describe(textured(20, 28))
    assert enlarged.image_shape == (60, 84)
    for found in (large, small, enlarged):
        assert (found.xy >= 7.5).all()
        assert (found.xy <= np.array(found.image_shape[::-1]) - 8.5).all()


def test_threads_do_not_change_results():
    images = [textured(30 + i, 50 - i) for i in range(12)]
    results = [DenseSIFT(n_jobs=n_jobs).transform(images) for n_jobs in (1, 2, 5, None)]
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one.values, two.values)
            np.testing.assert_array_equal(one.xy, two.xy)


def test_streaming_is_lazy_ordered_and_equal():
    images = [textured(20 + i, 30) for i in range(20)]
    taken = []

    def source():
        for image in images:
            taken.append(1)
            yield image

    stream = DenseSIFT().iter_transform(source(), n_jobs=2)
    first = next(stream)
    assert len(taken) <= 5
    assert [found.image_shape for found in (first, *stream)] == [image.shape for image in images]


def test_arrays_colours_and_views():
    stack = RNG.integers(0, 256, (3, 30, 32, 3), dtype=np.uint8)
    whole, listed = DenseSIFT().transform(stack), DenseSIFT().transform(list(stack))
    assert len(whole) == 3
    for one, two in zip(whole, listed, strict=True):
        np.testing.assert_array_equal(one.values, two.values)
    image = textured(40, 30)
    np.testing.assert_array_equal(
        DenseSIFT().describe(np.asfortranarray(image)).values, DenseSIFT().describe(image).values
    )


def test_a_border_continues_the_image():
    image = textured(40, 52)
    with_border = DenseSIFT(step=4, border=5).describe(image)
    by_hand = DenseSIFT(step=4).describe(np.pad(image, 5, mode="edge"))
    np.testing.assert_array_equal(with_border.values, by_hand.values)
    np.testing.assert_array_equal(with_border.xy, by_hand.xy)
    assert with_border.image_shape == (50, 62)


def test_scikit_learn_citizen():
    extractor = DenseSIFT(patch_size=(12, 16), step=4)
    assert clone(extractor).get_params() == extractor.get_params()
    assert extractor.fit() is extractor
    assert set(vars(extractor)) == {
        "patch_size",
        "step",
        "max_side",
        "min_side",
        "border",
        "contrast",
        "centre_ink",
        "n_jobs",
    }
    images = [textured(20, 20)]
    found = make_pipeline(pickle.loads(pickle.dumps(extractor))).fit_transform(images)
    np.testing.assert_array_equal(found[0].values, extractor.transform(images)[0].values)
    copy = pickle.loads(pickle.dumps(found[0]))
    np.testing.assert_array_equal(copy.values, found[0].values)
    assert not extractor.__sklearn_tags__().requires_fit


@pytest.mark.parametrize(("parameters", "words"), [
    ({"patch_size": 3}, "patch_size must be a whole number of at least 4; got 3"),
    ({"patch_size": 16.0}, "patch_size"),
    ({"patch_size": "16"}, "patch_size"),
    ({"patch_size": ()}, "patch_size is empty"),
    ({"patch_size": (16, 2)}, "patch_size"),
    ({"step": 0}, "step"),
    ({"max_side": 0}, "max_side"),
    ({"max_side": 12}, "max_side=12 is smaller than patch_size=16"),
    ({"min_side": -1}, "min_side"),
    ({"border": -1}, "border"),
    ({"min_side": 400}, "min_side=400 is larger than max_side=300"),
])  # fmt: skip
def test_bad_parameters(parameters, words):
    extractor = DenseSIFT(**parameters)
    for call in (extractor.fit, extractor.transform, extractor.iter_transform, extractor.describe):
        with pytest.raises(ValueError, match=words):
            call([textured(20, 20)])


def test_bad_images_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"images\[1\] holds values"):
        DenseSIFT().transform([textured(20, 20), 255 * textured(20, 20)])
    with pytest.raises(ImageReadError, match="missing.jpg"):
        DenseSIFT().transform([tmp_path / "missing.jpg"])
    with pytest.raises(ValueError, match="images is empty"):
        DenseSIFT().transform([])
    with pytest.raises(ValueError, match=r"\[image\]"):
        DenseSIFT().iter_transform(textured(20, 20))


def test_descriptors_check_their_shapes():
    with pytest.raises(ValueError, match="xy of shape"):
        Descriptors(np.zeros((3, 128), np.float32), np.zeros((2, 2), np.float32), (20, 20))
    with pytest.raises(ValueError, match="image_shape"):
        Descriptors(np.zeros((2, 128), np.float32), np.zeros((2, 2), np.float32), (20,))
    with pytest.raises(AttributeError):
        DenseSIFT().describe(textured(20, 20)).values = None


def test_importing_the_features_does_not_import_numba():
    script = "import sys, ddlcn.descriptors; ddlcn.descriptors.DenseSIFT(); print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"

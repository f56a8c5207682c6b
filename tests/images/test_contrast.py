"""Even contrast: what the light does to a picture is gone, what is on it stays."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DenseSIFT
from ddlcn.images.contrast import CONTRASTS, FLAT, SIGMA, even_contrast


@pytest.fixture
def grey():
    return np.random.default_rng(0).uniform(0.2, 0.8, (40, 50)).astype(np.float32)


def test_as_it_is(grey):
    assert even_contrast(grey, "none") is grey


@pytest.mark.parametrize("kind", CONTRASTS)
def test_shape_and_precision_stay(grey, kind):
    found = even_contrast(grey, kind)
    assert found.shape == grey.shape
    assert found.dtype == np.float32
    assert np.isfinite(found).all()


def test_local_contrast_is_the_slow_obvious_version(grey):
    """At one pixel, by weights written out: minus the weighted mean, divided by the weighted deviation of that."""
    reach = round(3 * SIGMA)
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    weights = np.outer(weights, weights) / weights.sum() ** 2

    def blur(values):
        padded = np.pad(values.astype(np.float64), reach, mode="edge")
        size = 2 * reach + 1
        windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
        return np.einsum("ijkl,kl->ij", windows, weights)

    difference = grey - blur(grey)
    expected = difference / (np.sqrt(blur(difference**2)) + FLAT)
    np.testing.assert_allclose(even_contrast(grey, "local"), expected, atol=1e-4)


def test_local_contrast_does_not_see_brightness_nor_strength(grey):
    """But for FLAT, which keeps the noise of a flat patch small."""
    changed = (0.1 + 0.7 * grey).astype(np.float32)
    before, after = even_contrast(grey, "local"), even_contrast(changed, "local")
    assert np.abs(before - after).max() < 0.1
    assert np.abs(even_contrast(np.full((20, 20), 0.3, np.float32), "local")).max() < 1e-3


def test_in_the_logarithm_a_shadow_is_a_constant(grey):
    light, shadow = even_contrast(grey, "log"), even_contrast(grey * np.float32(0.5), "log")
    assert np.ptp(light - shadow) < 0.1 * np.ptp(light)
    assert even_contrast(np.array([[0.0, 1.0]], np.float32), "log").ravel() == pytest.approx([0.0, 1.0], abs=1e-6)


def test_descriptors_of_a_face_in_the_shade(grey):
    """The same picture under another light has nearly the same descriptors, where the contrast is local."""
    ramp = np.linspace(0.3, 1.0, grey.shape[1], dtype=np.float32)

    def differ(contrast):
        sift = DenseSIFT(patch_size=8, step=4, contrast=contrast)
        bright, shaded = sift.transform([grey * 0.8, grey * 0.8 * ramp])
        return np.linalg.norm(bright.values - shaded.values)

    assert differ("local") < 0.25 * differ("none")


def test_what_is_kept_for_pictures_is_the_picture(grey):
    extracted = DenseSIFT(patch_size=8, contrast="local").extract(grey)
    np.testing.assert_array_equal(extracted.picture, np.round(255 * grey))


def test_an_unknown_kind_is_said_before_any_image_is_read():
    with pytest.raises(ValueError, match="contrast"):
        DenseSIFT(contrast="even").fit()

"""Ink that is centred and scaled: where and how large a drawing was makes no difference any more."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from ddlcn import DenseSIFT
from ddlcn.images.ink import RADIUS, centre_ink, find_background


def draw(x, y, size, side=105, ink=0, paper=255):
    """The letter F, its corner at (x, y)."""
    picture = Image.new("L", (side, side), paper)
    pen, width = ImageDraw.Draw(picture), max(2, size // 8)
    for line in ((0, 0, 0, size), (0, 0, 0.7 * size, 0), (0, 0.45 * size, 0.5 * size, 0.45 * size)):
        pen.line([x + line[0], y + line[1], x + line[2], y + line[3]], fill=ink, width=width)
    return np.asarray(picture, np.float32) / 255


def measure(grey):
    """Centre (2,) and root mean square radius of the ink."""
    ink = np.abs(grey - find_background(grey))
    rows, columns = np.indices(grey.shape)
    centre = np.array([(ink * rows).sum(), (ink * columns).sum()]) / ink.sum()
    return centre, np.sqrt((ink * ((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2)).sum() / ink.sum())


@pytest.mark.parametrize(("x", "y", "size"), [(10, 10, 40), (50, 40, 40), (20, 15, 64), (60, 60, 32)])
def test_ink_has_its_standard_centre_and_spread(x, y, size):
    centre, radius = measure(centre_ink(draw(x, y, size)))
    np.testing.assert_allclose(centre, 52, atol=0.7)
    assert abs(radius - RADIUS * 105) < 1.0


def test_place_and_size_make_no_difference():
    one, other = centre_ink(draw(10, 10, 40)), centre_ink(draw(30, 35, 64))
    assert np.abs(draw(10, 10, 40) - draw(30, 35, 64)).mean() > 0.1
    assert np.abs(one - other).mean() < 0.05


def test_white_on_black_is_the_negative_of_black_on_white():
    dark, light = centre_ink(draw(10, 20, 50)), centre_ink(draw(10, 20, 50, ink=255, paper=0))
    np.testing.assert_allclose(dark, 1 - light, atol=1e-6)


def test_proportions_stay():
    rectangle = np.ones((60, 90), np.float32)
    rectangle[20:24, 10:40] = 0  # 4 x 30
    ink = 1 - centre_ink(rectangle)
    height, width = np.ptp(np.flatnonzero(ink.max(axis=1) > 0.5)), np.ptp(np.flatnonzero(ink.max(axis=0) > 0.5))
    assert 6 < width / height < 11
    assert ink.shape == (60, 90)


def test_an_empty_sheet_and_noise_stay_as_they_are():
    blank = np.full((40, 40), 0.8, np.float32)
    assert centre_ink(blank) is blank
    noisy = blank + np.random.default_rng(0).uniform(-0.05, 0.05, blank.shape).astype(np.float32)
    np.testing.assert_array_equal(centre_ink(noisy), noisy)


def test_descriptors_of_centred_ink_are_those_of_the_centred_picture():
    picture = draw(10, 10, 40)
    (found,) = DenseSIFT(centre_ink=True).transform([picture])
    (expected,) = DenseSIFT().transform([centre_ink(picture)])
    np.testing.assert_array_equal(found.values, expected.values)
    assert DenseSIFT(centre_ink=True).cache_key() != DenseSIFT().cache_key()

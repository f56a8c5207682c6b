"""Drawings say what the numbers say."""

from __future__ import annotations

import numpy as np

from ddlcn import DenseSIFT
from ddlcn.web.drawing import draw_heat, draw_picture, find_frame, find_limit


def test_orange_speaks_for_and_blue_against():
    heat = np.zeros((20, 30))
    heat[:10], heat[10:] = 1.0, -1.0
    drawn = np.asarray(draw_heat(np.full((40, 60), 0.5), heat, find_limit(heat)), int)
    top, bottom = drawn[40, 200], drawn[-40, 200]
    assert drawn.shape == (320, 480, 3)
    assert top[0] > top[2] + 50  # more red than blue
    assert bottom[2] > bottom[0] + 50


def test_no_heat_leaves_the_picture_grey():
    drawn = np.asarray(
        draw_heat(np.random.default_rng(0).random((16, 16)), np.zeros((16, 16)), find_limit(np.zeros(4)))
    )
    assert np.array_equal(drawn[..., 0], drawn[..., 2])


def test_pictures_of_any_kind(tmp_path, digit_folder):
    assert draw_picture(digit_folder / "digit0" / "00.png").size == (480, 480)
    assert draw_picture(np.zeros((10, 20))).size == (480, 240)


def test_heat_lies_on_the_drawing_where_it_was_centred():
    """A square in a corner: in the frame of its heat map it is in the middle; without centring nothing changes."""
    picture = np.ones((100, 100), np.float32)
    picture[5:25, 5:25] = 0
    frame = find_frame(DenseSIFT(centre_ink=True, border=7), picture)
    assert frame.shape == (100, 100)
    np.testing.assert_allclose(
        [np.average(np.arange(100), weights=(1 - frame).sum(axis=a)) for a in (0, 1)], 49.5, atol=1
    )
    assert find_frame(DenseSIFT(), picture) is picture
    assert find_frame(object(), picture) is picture

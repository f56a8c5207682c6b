"""Properties that tell the class by themselves: found where they are, and not where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ddlcn.datasets.shortcuts import describe_file, find_shortcuts

LABELS = np.repeat(["a", "b", "c"], 15)


def save_all(folder, width=lambda c, rng: 40, shade=lambda c, rng: rng.integers(40, 200), camera=lambda c, rng: "X"):
    rng, paths = np.random.default_rng(0), []
    for i, label in enumerate(LABELS):
        c = "abc".index(label)
        noise = rng.integers(-30, 30, (32, int(width(c, rng)), 3)) + int(shade(c, rng))
        exif = Image.Exif()
        exif[0x0110] = camera(c, rng)
        paths.append(folder / f"{i}.jpg")
        Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).save(paths[-1], exif=exif)
    return paths


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, set()),
        ({"width": lambda c, rng: 40 + 10 * c}, {"width in pixels", "width against height"}),
        ({"shade": lambda c, rng: 60 + 60 * c}, {"brightness", "brightness of the border"}),
        ({"camera": lambda c, rng: "XYZ"[c]}, {"camera"}),
        ({"camera": lambda c, rng: rng.choice(["X", "Y"])}, set()),
    ],
    ids=["none", "width", "brightness", "camera", "any camera"],
)
def test_what_tells_the_class_is_found_and_nothing_else(tmp_path, changes, names):
    found = find_shortcuts(save_all(tmp_path, **changes), LABELS, np.arange(45), 1)
    assert names <= {shortcut.name for shortcut in found}
    assert names or not found
    for shortcut in found:
        assert shortcut.guessed == pytest.approx(1 / 3)
        assert shortcut.recognised > 0.66


def test_a_handful_of_pictures_says_nothing(tmp_path):
    paths = save_all(tmp_path, width=lambda c, rng: 40 + 10 * c)
    assert find_shortcuts(paths[10:25], LABELS[10:25], np.arange(15), 1) == []


@pytest.mark.filterwarnings("error")
def test_small_classes_neither_warn_nor_fail(tmp_path):
    paths = save_all(tmp_path)
    assert find_shortcuts(paths, np.r_[LABELS[:43], ["d", "d"]], np.arange(45), 1) == []
    assert find_shortcuts(paths, np.arange(45) // 2, np.arange(45), 1) == []


def test_properties_of_a_file(tmp_path):
    found = describe_file(save_all(tmp_path)[0])
    assert (found["width in pixels"], found["height in pixels"], found["width against height"]) == (40, 32, 1.25)
    assert (found["kind of file"], found["kind of pixels"], found["camera"]) == ("JPEG", "RGB", "X")
    assert 0 < found["brightness"] < 1

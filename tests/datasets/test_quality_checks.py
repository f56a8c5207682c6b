"""What is said about a person's pictures."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ddlcn.datasets.quality_checks import find_duplicates, make_remarks
from ddlcn.datasets.thumbnails import make_thumbnail


@pytest.fixture
def pictures(tmp_path):
    """Six unlike pictures; the first again as a small JPEG, the second mirrored."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(6):
        rough = Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8))
        rough.resize((128, 96), Image.Resampling.BICUBIC).save(tmp_path / f"{i}.png")
        paths.append(tmp_path / f"{i}.png")
    Image.open(paths[0]).resize((64, 48)).save(tmp_path / "small.jpg", quality=70)
    Image.open(paths[1]).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(tmp_path / "mirrored.png")
    return [*paths, tmp_path / "small.jpg", tmp_path / "mirrored.png"]


def test_the_same_picture_resized_and_compressed_is_found(pictures):
    groups = find_duplicates(np.stack([make_thumbnail(path) for path in pictures]))
    assert groups[0] == groups[6]
    assert len(set(groups.tolist())) == 7


def test_flat_pictures_are_no_duplicates(tmp_path):
    for i in range(2):
        Image.new("L", (50, 50), 40 + i).save(tmp_path / f"{i}.png")
    thumbnails = np.stack([make_thumbnail(tmp_path / f"{i}.png") for i in range(2)])
    assert len(set(find_duplicates(thumbnails).tolist())) == 2


def test_remarks(pictures, tmp_path):
    Image.new("L", (12, 300)).save(tmp_path / "strip.png")
    paths = [*pictures, tmp_path / "strip.png"]
    groups = np.array([0, 1, 2, 3, 4, 5, 0, 6, 7])
    labels = np.array(["dog"] * 6 + ["cat"] * 3)
    text = "\n".join(make_remarks(paths, labels, groups))
    assert "0.png (dog) and" in text
    assert "small.jpg (cat)" in text
    assert "1 of 9 pictures are near-duplicates" in text
    assert "fewer than 5 pictures of cat" in text
    assert "1 pictures have a side below 24 pixels, the first" in text
    assert "unbalanced" not in text
    unbalanced = make_remarks(pictures[:1] * 21, np.array(["a"] * 20 + ["b"]), np.arange(21))
    assert any("a has 20 pictures, b 1" in remark for remark in unbalanced)


def test_nothing_to_remark(pictures):
    assert make_remarks(pictures[:5] * 2, np.repeat(["a", "b"], 5), np.arange(10)) == []

"""Pictures that are drawn, aligned or neither are told apart without labels."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter, shift
from sklearn.datasets import load_digits

from ddlcn.choosing.look import look_at, look_over, measure_alignment
from ddlcn.images import name_images


def name(images):
    return list(name_images(images))


def see_kind(items, n_jobs):
    return look_over(items, n_jobs).kind


def see_colour(items, n_jobs):
    return look_over(items, n_jobs).has_colour


def blot(rng):
    """A picture without anything in particular at any place."""
    texture = gaussian_filter(rng.normal(size=(100, 90)), 2.5)
    return np.clip(0.5 + texture / (4 * texture.std()), 0, 1)


def draw(rng):
    picture = Image.new("L", (60, 60), 255)
    points = rng.integers(10, 50, (5, 2)).ravel().tolist()
    ImageDraw.Draw(picture).line(points, fill=0, width=3)
    return np.asarray(picture)


def make_aligned(n, rng, moved=0):
    """One scene, the same at every place, and a little that differs."""
    scene = blot(rng)
    scenes = [np.clip(0.8 * scene + 0.2 * blot(rng), 0, 1) for _ in range(n)]
    return [shift(each, rng.uniform(-moved, moved, 2), order=1, mode="wrap") for each in scenes]


def test_ink_on_paper_and_chalk_on_a_board_are_drawn():
    rng = np.random.default_rng(0)
    drawings = [draw(rng) for _ in range(12)]
    assert see_kind(name(drawings), 1) == "drawn"
    assert see_kind(name([255 - drawing for drawing in drawings]), 1) == "drawn"
    assert see_kind(name(np.kron(load_digits().images[:30] / 16, np.ones((4, 4)))), 1) in ("drawn", "aligned")


def test_something_on_an_empty_background_is_plain():
    """Ink or not: a grey thing on white paper may be drawn, and a scene may not."""
    rng = np.random.default_rng(0)
    drawings = [draw(rng) for _ in range(12)]
    faint = [255 - (255 - drawing) // 4 for drawing in drawings]
    assert look_over(name(drawings), 1).is_plain
    assert look_over(name(faint), 1).is_plain
    assert see_kind(name(faint), 1) != "drawn"
    assert not look_over(name([blot(rng) for _ in range(12)]), 1).is_plain


def test_the_same_scene_is_aligned_and_moved_about_it_is_not():
    rng = np.random.default_rng(0)
    assert see_kind(name(make_aligned(12, rng)), 1) == "aligned"
    assert see_kind(name(make_aligned(12, rng, moved=40)), 1) == "photo"
    assert see_kind(name([blot(rng) for _ in range(12)]), 1) == "photo"


def test_pictures_have_colour_or_not():
    rng = np.random.default_rng(0)
    greys = [blot(rng) for _ in range(5)]
    assert not see_colour(name(greys), 1)
    assert not see_colour(name([np.repeat(grey[..., None], 3, axis=2) for grey in greys]), 1)
    assert see_colour(name([grey[..., None] * (1.0, 0.8, 0.6) for grey in greys]), 1)


def test_pictures_of_many_shapes_were_aligned_by_nobody():
    pictures = make_aligned(12, np.random.default_rng(0))
    cut = [picture[:, : 90 - 5 * i] for i, picture in enumerate(pictures)]
    assert see_kind(name(cut), 1) == "photo"
    assert see_kind(name([*pictures[:-1], cut[-1]]), 1) == "aligned"  # one of another shape is no trouble


def test_alignment_is_the_slow_obvious_version():
    """Mean inner product of the same cell in two pictures, and of any two cells, pair by pair."""
    from ddlcn.choosing import look
    from ddlcn.descriptors import DenseSIFT

    items = name(make_aligned(4, np.random.default_rng(1)))
    sift = DenseSIFT(patch_size=16, step=8, max_side=look.SIDE, min_side=80, contrast="local")
    cells = [look._average(sift.describe(item.image)) for item in items]
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    same = np.mean([(cells[a] * cells[b]).sum(axis=1).mean() for a, b in pairs])
    every = np.mean([(cells[a] @ cells[b].T).mean() for a, b in pairs])
    assert measure_alignment(look_at(items, 1)) == pytest.approx((same - every) / (1 - every), abs=1e-6)


def test_every_picture_is_read_once(monkeypatch):
    from ddlcn.choosing import look
    from ddlcn.descriptors import keep_descriptors

    read, real = [], look.read_image
    monkeypatch.setattr(look, "read_image", lambda image, **more: read.append(1) or real(image, **more))
    items = keep_descriptors(make_aligned(5, np.random.default_rng(1)))
    assert see_kind(items, 1) == see_kind(items, 2)
    assert len(read) == 5


def test_a_single_picture_or_a_flat_one_is_no_trouble():
    assert see_kind(name([np.full((40, 40), 0.5)]), 1) == "photo"
    assert see_kind(name([np.zeros((40, 40)), np.ones((40, 40))]), 1) in ("drawn", "aligned", "photo")


@pytest.mark.data
@pytest.mark.parametrize(
    ("dataset", "kind"), [("yaleb", "aligned"), ("ar", "aligned"), ("mnist", "drawn"), ("caltech101", "photo")]
)
def test_on_real_pictures(dataset, kind, data_root):
    from ddlcn.datasets import load_dataset

    data = load_dataset(dataset, data_root)
    firsts = [int(np.flatnonzero(data.labels == c)[0]) for c in range(len(data.class_names))]
    assert see_kind(name([data.images[i] for i in firsts]), 1) == kind

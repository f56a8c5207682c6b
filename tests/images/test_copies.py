"""Virtual copies: the same picture, slightly varied, the same each time it is read, and never on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from ddlcn import DDLCNClassifier, DenseSIFT, load_model
from ddlcn.images import ImageReadError, name_images, read_image, variation
from ddlcn.images.colour import read_picture
from ddlcn.images.copies import TURNED, add_copies, count_copies
from ddlcn.images.variation import BentCopy, TurnedCopy, vary
from ddlcn.workflows.update import expand, update

SEED = np.random.SeedSequence(0)
COLOURS = np.random.default_rng(2).integers(0, 256, (5, 7, 3)).astype(np.uint8)


def smooth(height=40, width=30):
    y, x = np.mgrid[:height, :width]
    return (0.5 + 0.4 * np.sin(x / 5) * np.cos(y / 7)).astype(np.float32)


@pytest.mark.parametrize("shape", [(40, 30), (40, 30, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_a_copy_has_the_shape_the_type_and_the_range_of_the_picture(shape, dtype):
    rng = np.random.default_rng(0)
    picture = rng.random(shape).astype(dtype) if dtype == np.float32 else rng.integers(0, 256, shape).astype(dtype)
    copy = vary(picture, rng)
    assert copy.shape == shape
    assert copy.dtype == dtype
    assert picture.min() <= copy.min()
    assert copy.max() <= picture.max()


def test_no_variation_is_the_picture_itself(monkeypatch):
    for name in ("TURN", "SCALE", "SHEAR", "SHIFT", "BEND"):
        monkeypatch.setattr(variation, name, 0.0)
    np.testing.assert_allclose(vary(smooth(), np.random.default_rng(0)), smooth(), atol=1e-6)


def test_a_shift_alone_moves_the_picture(monkeypatch):
    for name in ("TURN", "SCALE", "SHEAR", "BEND"):
        monkeypatch.setattr(variation, name, 0.0)
    picture = np.add.outer(np.arange(41.0), 100 * np.arange(31.0))  # each value says where it is from
    moved = vary(picture, np.random.default_rng(3))[5:-5, 5:-5] - picture[5:-5, 5:-5]
    assert np.ptp(moved) < 1e-6  # all by the same
    assert 0.01 < abs(moved[0, 0]) < 0.05 * (41 + 100 * 31)


def test_copies_are_small_changes_and_differ(monkeypatch):
    copies = [BentCopy(smooth(), seed).vary(smooth()) for seed in SEED.spawn(20)]
    distances = [np.abs(copy - smooth()).mean() for copy in copies]
    spread = smooth().std()
    assert max(distances) < spread  # still that picture
    assert min(distances) > 0.02 * spread
    assert np.abs(copies[0] - copies[1]).mean() > 0.02 * spread


def test_a_copy_is_the_same_each_time_and_of_any_kind_of_image(tmp_path):
    array = np.round(255 * smooth()).astype(np.uint8)
    Image.fromarray(array).save(tmp_path / "a.png")
    seed = np.random.SeedSequence(5)
    grey = read_image(BentCopy(array, seed))
    np.testing.assert_array_equal(grey, read_image(BentCopy(array, seed)))
    np.testing.assert_array_equal(grey, read_image(BentCopy(tmp_path / "a.png", seed)))
    assert read_picture(BentCopy(tmp_path / "a.png", seed)).shape == (40, 30, 3)
    with pytest.raises(ImageReadError, match=r"missing\.png"):
        read_image(BentCopy(tmp_path / "missing.png", seed))


def test_every_image_is_followed_by_its_copies():
    items = list(name_images([smooth(), smooth(20, 20)]))
    together = add_copies(items, 3, np.random.SeedSequence(1))
    assert together[0] is items[0]
    assert together[4] is items[1]
    assert [item.name for item in together] == [items[0].name] * 4 + [items[1].name] * 4
    alone = add_copies(items[:1], 3, np.random.SeedSequence(1))
    np.testing.assert_array_equal(read_image(alone[2].image), read_image(together[2].image))
    assert add_copies(items, 0, np.random.SeedSequence(1)) == items


def test_turned_copies_are_all_eight_ways_to_lay_a_picture_down():
    picture = np.arange(12.0).reshape(3, 4) / 12
    ways = [read_image(item.image) for item in add_copies(list(name_images([picture])), TURNED, SEED)]
    assert len(ways) == 1 + count_copies(TURNED) == 8
    assert len({(way.shape, way.tobytes()) for way in ways}) == 8
    for way in ways:
        assert sorted(way.ravel()) == sorted(np.float32(picture).ravel())
    np.testing.assert_array_equal(TurnedCopy(picture, 1).vary(picture), np.rot90(picture))
    flipped = read_picture(TurnedCopy(COLOURS, 2, mirrored=True))
    np.testing.assert_array_equal(flipped, COLOURS[::-1])


def test_with_turned_copies_it_does_not_matter_how_a_picture_lies():
    """Three blots, learned one way up and shown upside down."""
    rng = np.random.default_rng(0)
    blots = [np.kron(rng.random((6, 6)), np.ones((8, 8))) for _ in range(3)]
    images = [np.clip(blot + rng.normal(0, 0.05, blot.shape), 0, 1) for blot in blots for _ in range(4)]
    labels = np.repeat([0, 1, 2], 4)
    settings = {"features": DenseSIFT(min_side=48), "shared_atoms": 30, "n_layers": 1, "random_state": 0}
    turned = DDLCNClassifier(**settings, copies=TURNED, keep_features=True).fit(images, labels)
    for quarters in range(4):
        assert turned.score([np.rot90(image, quarters) for image in images], labels) == 1.0
    assert turned.kept_.features.shape[0] == 8 * len(images)
    assert turned.card_["images_per_class"] == [4, 4, 4]
    more = update(turned, images[:2], labels[:2])
    assert more.card_["images_per_class"] == [6, 4, 4]
    probabilities = turned.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("wrong", ["bent", -1, 1.5, None])
def test_copies_are_a_number_or_turned(wrong):
    with pytest.raises(ValueError, match="copies must be"):
        DDLCNClassifier(copies=wrong).fit([smooth(), smooth()], [0, 1])


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    few = np.concatenate([np.flatnonzero(data.target == c)[:3] for c in range(10)])
    rest = np.setdiff1d(np.arange(len(data.target)), few)[:400]
    images = data.images / 16.0
    return images[few], data.target[few], images[rest], data.target[rest]


def make(copies, **more):
    sift = DenseSIFT(12, 4, min_side=40)
    return DDLCNClassifier(
        sift, n_layers=1, shared_atoms=50, n_neighbors=5, copies=copies, C=10.0, random_state=0, **more
    )


def test_copies_help_where_a_class_has_few_images(digits):
    """One of each digit, upright; those to recognise are turned and bent."""
    images, labels, new, expected = digits
    firsts = np.unique(labels, return_index=True)[1]
    rng = np.random.default_rng(0)
    turned = [vary(read_image(image, min_side=40), rng) for image in new]
    without, with_copies = (make(n).fit(images[firsts], labels[firsts]).score(turned, expected) for n in (0, 10))
    assert with_copies > without + 0.02


def test_only_the_svm_sees_copies(digits):
    images, labels, new, _ = digits
    without, with_copies = (make(n).fit(images, labels) for n in (0, 2))
    np.testing.assert_array_equal(without.dictionaries_[0], with_copies.dictionaries_[0])
    assert (without.transform(new[:9]) != with_copies.transform(new[:9])).nnz == 0
    assert with_copies.card_["images_per_class"] == [3] * 10


def test_copies_do_not_calibrate(digits):
    """A copy of a held-out image among the training images would make the probabilities far too sure."""
    images, labels, _, _ = digits
    model = make(4).fit(images, labels)
    assert model.calibrator_._problem.gram.shape == (30, 30)
    np.testing.assert_array_equal(np.bincount(model.calibrator_._problem.y), [3] * 10)


def test_a_model_with_copies_travels_and_learns_more(digits, tmp_path):
    images, labels, new, expected = digits
    model = make(3, keep_features=True).fit(images, labels)
    model.save(tmp_path / "m.ddlcn")
    model = load_model(tmp_path / "m.ddlcn")
    assert model.kept_.features.shape[0] == 4 * 30
    updated = update(model, new[:100], expected[:100])
    assert updated.kept_.features.shape[0] == 4 * 130
    assert sum(updated.card_["images_per_class"]) == 130
    assert updated.score(new[100:], expected[100:]) > model.score(new[100:], expected[100:])
    again = expand(model, np.concatenate([images, new[:100]]), np.concatenate([labels, expected[:100]]))
    assert sum(again.card_["images_per_class"]) == 130


def test_a_number_that_is_none_is_said_at_once():
    with pytest.raises(ValueError, match="copies"):
        make(-1).fit(["no-such-file.png"], ["a"])

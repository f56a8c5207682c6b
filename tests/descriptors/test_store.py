"""Describe once: kept in memory, then on disk, then not; what comes out is the same."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.descriptors.store import DescriptorStore, Extracted, describe, extract, keep_descriptors, keep_pixels
from ddlcn.images import NamedImage, decoding, read_image
from ddlcn.images.decoding import Pixels
from ddlcn.images.variation import BentCopy
from ddlcn.workflows.train import Training


class Counting(DenseSIFT):
    """Dense SIFT that counts how often it works."""

    n_calls = 0

    def extract(self, image, name="image"):
        Counting.n_calls += 1
        return super().extract(image, name)


@pytest.fixture(autouse=True)
def _start_counting():
    Counting.n_calls = 0


@pytest.mark.parametrize(("max_bytes", "max_disk_bytes", "n_calls"), [(10**9, 0, 6), (0, 10**9, 6), (0, 0, 12)])
def test_kept_or_not_the_descriptors_are_the_same(stripes, max_bytes, max_disk_bytes, n_calls):
    images, sift = stripes[0][:6], Counting(step=4)
    items = keep_descriptors(images, DescriptorStore(max_bytes, max_disk_bytes))
    for _ in range(2):
        for item, expected in zip(items, DenseSIFT(step=4).transform(images), strict=True):
            found = describe(sift, item)
            np.testing.assert_array_equal(found.values, expected.values)
            np.testing.assert_array_equal(found.xy, expected.xy)
            assert found.image_shape == expected.image_shape
    assert Counting.n_calls == n_calls


def test_memory_goes_no_further_than_its_limit(stripes):
    one = extract(DenseSIFT(), NamedImage("", stripes[0][0])).nbytes
    store = DescriptorStore(max_bytes=3 * one, max_disk_bytes=2 * one)
    items = keep_descriptors(stripes[0][:8], store)
    for _ in range(2):
        for item in items:
            describe(Counting(), item)
    assert Counting.n_calls == 8 + 3  # three in memory, two on disk, three made again


def test_other_parameters_are_other_descriptors(stripes):
    (item,) = keep_descriptors(stripes[0][:1])
    assert len(describe(DenseSIFT(step=4), item)) != len(describe(DenseSIFT(step=8), item))
    same = extract(DenseSIFT(step=4), item)
    assert same is extract(DenseSIFT(step=4, n_jobs=2), item)  # threads change nothing


def test_a_temporary_folder_that_somebody_emptied_costs_time_only(stripes):
    store = DescriptorStore(0, 10**9)
    items = keep_descriptors(stripes[0][:2], store)
    first = describe(Counting(), items[0])
    for path in list(store._kept.values()):
        path.unlink()
    np.testing.assert_array_equal(describe(Counting(), items[0]).values, first.values)
    assert Counting.n_calls == 2


def test_one_fit_describes_every_image_once(stripes):
    images, labels = stripes[0][:18], stripes[1][:18]
    model = DDLCNClassifier.preset("accurate", features=Counting(step=8), random_state=0)
    model.set_params(keep_features=True, keep_patches=True, deep_atoms=(8,), first_order=8).fit(images, labels)
    assert Counting.n_calls == 18
    again = DDLCNClassifier([Counting(step=8), Counting(step=6)], n_layers=1, atoms_per_class=2, random_state=0)
    again.fit(images, labels)  # folds for the weights, then the fit
    assert Counting.n_calls == 18 + 2 * 18


@pytest.mark.parametrize("preset", ["fast", "drawn", "auto"])
def test_a_training_decodes_every_picture_once(digit_folder, tmp_path, monkeypatch, preset):
    """Folds, recipes, copies, the final fit, kept features; `ddlcn train` decodes once more, to check the file."""
    decoded = Counter()
    real = decoding.decode_pixels

    def count(picture):
        decoded[picture.filename] += 1
        return real(picture)

    monkeypatch.setattr(decoding, "decode_pixels", count)
    paths = [path for path in sorted(digit_folder.glob("*/*.png")) if path.parent.name < "digit3"]
    labels = np.array([path.parent.name for path in paths])
    model = DDLCNClassifier.preset(preset, random_state=0, keep_patches=preset == "fast")
    Training(model, paths, labels, np.arange(len(paths)), tmp_path / "m.ddlcn").run()
    assert set(decoded.values()) == {1}
    assert len(decoded) == len(paths)


def test_of_threads_that_ask_at_once_one_works():
    store, made = DescriptorStore(), []

    def make():
        made.append(1)
        time.sleep(0.05)
        return Extracted(Pixels(np.zeros(1), False))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: store.recall("a", make), range(8)))
    assert len(made) == 1
    assert all(each is found[0] for each in found)


def test_kept_pixels_change_nothing(tmp_path):
    """A turned JPEG, large enough to be decoded at a fraction of its size: as read from the file, every time."""
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (30, 40, 3), np.uint8))
    exif = Image.Exif()
    exif[decoding.EXIF_ORIENTATION] = 6
    small.resize((1600, 1200)).save(tmp_path / "turned.jpg", exif=exif)
    (item,) = keep_descriptors([tmp_path / "turned.jpg"])
    keep_pixels([item])
    for side in (100, 300, 100, None):
        np.testing.assert_array_equal(
            read_image(item.image, max_side=side), read_image(tmp_path / "turned.jpg", max_side=side)
        )
    copies = [BentCopy(image, np.random.SeedSequence(1)) for image in (item.image, tmp_path / "turned.jpg")]
    np.testing.assert_array_equal(*(read_image(copy, max_side=100) for copy in copies))


def test_images_that_have_a_place_keep_it(stripes, tmp_path):
    Image.fromarray((255 * stripes[0][0]).astype(np.uint8)).save(tmp_path / "a.png")
    items = keep_descriptors([tmp_path / "a.png", stripes[0][1]])
    assert items[0].name == "images[0]"
    assert keep_descriptors(items[::-1])[0] is items[1]

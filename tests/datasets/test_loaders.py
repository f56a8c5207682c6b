"""Every data set is read in every layout it is given out in, junk is left out, and what is missing is said."""

from __future__ import annotations

import io
import math
import pickle
import re

import numpy as np
import pytest
from PIL import Image

from ddlcn.datasets import ArchiveMember, load_dataset, yaleb
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.registry import LOADERS
from ddlcn.images import read_image, read_images
from tests.datasets import packing

# How each made-up set is packed: name, function of (root, files), files, classes, images.
YALEB, AR = packing.yaleb_files(), packing.ar_files()
C101, C256 = packing.caltech101_files(), packing.caltech256_files()
RUNS, BACKGROUND = packing.omniglot_files(side=28), packing.background_files(1) | packing.background_files(2)


def pack_inner(root, files):
    packing.write_tar(root / "inner.tar.gz", files)
    content = {"caltech-101/101_ObjectCategories.tar.gz": (root / "inner.tar.gz").read_bytes()}
    content |= {"__MACOSX/caltech-101/._101_ObjectCategories.tar.gz": b"junk", "caltech-101/Annotations.tar": b"other"}
    packing.write_zip(root / "caltech101/caltech-101.zip", content)


def pack_background(root, files):
    for part in ("images_background_small1", "images_background_small2"):
        own = {name: content for name, content in files.items() if name.startswith(part)}
        packing.write_zip(root / f"omniglot/{part}.zip", own)


LAYOUTS = {
    "yaleb zip": ("yaleb", lambda r, f: packing.write_zip(r / "yaleb/CroppedYale.zip", f), YALEB, 2, 24),
    "yaleb folder": ("yaleb", lambda r, f: packing.write_folder(r / "yaleb", f), YALEB, 2, 24),
    "ar bitmaps": ("ar", lambda r, f: packing.write_folder(r / "ar", f), AR, 4, 12),
    "caltech101 folder": ("caltech101", lambda r, f: packing.write_folder(r / "caltech101", f), C101, 3, 9),
    "caltech101 folder in folder": (
        "caltech101", lambda r, f: packing.write_folder(r / "caltech101/caltech-101", f), C101, 3, 9),
    "caltech101 tar.gz": (
        "caltech101", lambda r, f: packing.write_tar(r / "caltech101/101_ObjectCategories.tar.gz", f), C101, 3, 9),
    "caltech101 zip of tar.gz": ("caltech101", pack_inner, C101, 3, 9),
    "caltech256 folder": ("caltech256", lambda r, f: packing.write_folder(r / "caltech256", f), C256, 3, 9),
    "caltech256 tar": (
        "caltech256", lambda r, f: packing.write_tar(r / "caltech256/256_ObjectCategories.tar", f), C256, 3, 9),
    "omniglot zip": ("omniglot", lambda r, f: packing.write_zip(r / "omniglot/all_runs.zip", f), RUNS, 8, 16),
    "omniglot folder": ("omniglot", lambda r, f: packing.write_folder(r / "omniglot/all_runs", f), RUNS, 8, 16),
    "omniglot folder of runs": ("omniglot", lambda r, f: packing.write_folder(r / "omniglot", f), RUNS, 8, 16),
    "background zips": ("omniglot-background", pack_background, BACKGROUND, 9, 18),
    "background folders": (
        "omniglot-background", lambda r, f: packing.write_folder(r / "omniglot", f), BACKGROUND, 9, 18),
}  # fmt: skip


@pytest.fixture(params=LAYOUTS)
def made_up(request, tmp_path, monkeypatch):
    """A made-up data set: its name, its root, and its files."""
    name, pack, files, n_classes, n_images = LAYOUTS[request.param]
    pack(tmp_path, files)
    packing.expect(monkeypatch, name, n_classes, n_images)
    return name, tmp_path, files


def test_images_of_every_layout_are_those_that_were_packed(made_up):
    name, root, files = made_up
    dataset = load_dataset(name, root)
    for image, image_name in zip(dataset.images, dataset.image_names, strict=True):
        end = f"/{image_name}.bmp" if name == "ar" else f"/{image_name}"
        (content,) = {content for path, content in files.items() if f"/{path}".endswith(end)}
        assert image.read_bytes() == content
    for label, image_name in zip(dataset.labels, dataset.image_names, strict=True):
        # A drawing of a run of Omniglot has only the run in its name.
        assert image_name.startswith(dataset.class_names[label].split("/class")[0])
    assert list(dataset.labels) == sorted(dataset.labels)
    assert len(set(dataset.image_names)) == len(dataset)


def test_a_data_set_can_be_read_by_threads_and_after_pickling(made_up):
    name, root, _ = made_up
    dataset = load_dataset(name, root)
    alone = [read_image(image) for image in dataset.images]
    for images in (dataset.images, pickle.loads(pickle.dumps(dataset.images))):
        for image, expected in zip(read_images(images, n_jobs=4), alone, strict=True):
            np.testing.assert_array_equal(image, expected)


def test_a_missing_image_is_counted(made_up, monkeypatch):
    name, root, _ = made_up
    record = CATALOGUE[name]
    packing.expect(monkeypatch, name, record.n_classes, record.n_images + 1)
    wanted = f"found {record.n_images} images where the distribution of {record.title} has {record.n_images + 1}"
    with pytest.raises(ValueError, match=wanted):
        load_dataset(name, root)
    packing.expect(monkeypatch, name, record.n_classes + 1, record.n_images)
    with pytest.raises(ValueError, match=f"found {record.n_classes} classes"):
        load_dataset(name, root)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if "folder" not in layout and "bit" not in layout])
def test_an_archive_cut_anywhere_is_named(layout, tmp_path, monkeypatch):
    name, pack, files, n_classes, n_images = LAYOUTS[layout]
    pack(tmp_path, files)
    packing.expect(monkeypatch, name, n_classes, n_images)
    path = next(path for file in CATALOGUE[name].files if (path := tmp_path / CATALOGUE[name].folder / file).is_file())
    content = path.read_bytes()
    # Not the last 11,000 bytes of a tar: blocks of zeros that mean nothing.
    length = len(content.rstrip(b"\0")) if path.suffix == ".tar" else len(content)
    for cut in np.linspace(0, length - 1, 23).astype(int):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load_dataset(name, tmp_path)


def test_a_changed_byte_in_a_gzipped_tar_never_passes(tmp_path, monkeypatch):
    packing.expect(monkeypatch, "caltech101", 3, 9)
    path = tmp_path / "caltech101/101_ObjectCategories.tar.gz"
    packing.write_tar(path, C101)
    content = path.read_bytes()
    expected = [image.read_bytes() for image in load_dataset("caltech101", tmp_path).images]
    rng = np.random.default_rng(0)
    for position in rng.integers(10, len(content), 60):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            found = [image.read_bytes() for image in load_dataset("caltech101", tmp_path).images]
        except ValueError as error:
            message = str(error)
        else:  # a byte that means nothing, such as the name of the file in gzip's header
            message = str(path) if found == expected else "other images"
        assert str(path) in message


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_mnist_gzipped_or_not(tmp_path, monkeypatch, suffix):
    packing.write_mnist(tmp_path, suffix=suffix)
    packing.expect(monkeypatch, "mnist", 10, 40)
    dataset = load_dataset("mnist", tmp_path)
    assert dataset.images.shape == (40, 28, 28)
    assert dataset.is_test.sum() == 10
    assert dataset.is_test[30:].all()
    assert dataset.image_names[30] == "t10k/00000"
    np.testing.assert_array_equal(dataset.labels, [*(np.arange(30) % 10), *range(10)])
    assert "10 of them for testing" in repr(dataset)


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_mnist_cut_or_incomplete_is_named(tmp_path, suffix):
    packing.write_mnist(tmp_path, suffix=suffix)
    path = tmp_path / f"mnist/t10k-images-idx3-ubyte{suffix}"
    content = path.read_bytes()
    for cut in (0, 3, 9, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load_dataset("mnist", tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="mnist/t10k-images.*ddlcn data fetch mnist"):
        load_dataset("mnist", tmp_path)


def test_ar_arrays(tmp_path, monkeypatch):
    packing.expect(monkeypatch, "ar", 2, 6)
    (tmp_path / "ar").mkdir()
    path = tmp_path / "ar/ar_42x30_100x26.npz"
    images = np.random.default_rng(0).integers(0, 256, (6, 42, 30), dtype=np.uint8)
    names = [f"p{i // 3 + 1:03d}-{i % 3 + 1:02d}" for i in range(6)]
    np.savez(path, images=images, labels=np.arange(6) // 3, names=names)
    dataset = load_dataset("ar", tmp_path)
    np.testing.assert_array_equal(dataset.images, images)
    assert dataset.class_names == ("p001", "p002")
    assert dataset.image_names == tuple(names)
    np.testing.assert_array_equal(dataset.labels, [0, 0, 0, 1, 1, 1])
    content = path.read_bytes()
    for cut in (0, 40, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            load_dataset("ar", tmp_path)
    np.savez(path, pictures=images)
    with pytest.raises(ValueError, match="pictures"):
        load_dataset("ar", tmp_path)


def test_caltech256_of_the_real_size(tmp_path):
    """The real numbers of images and classes, no pixels: listing reads none."""
    folder = tmp_path / "caltech256"
    classes = [f"{i:03d}.thing-{i}" for i in range(1, 257)] + ["257.clutter"]
    per_class = [29780 // 256 + (i < 29780 % 256) for i in range(256)] + [827]
    files = {
        f"256_ObjectCategories/{c}/{c[:3]}_{i:04d}.jpg": b""
        for c, n in zip(classes, per_class, strict=True)
        for i in range(1, n + 1)
    }
    assert len(files) == 30607
    packing.write_tar(folder / "256_ObjectCategories.tar", files)
    dataset = load_dataset("caltech256", tmp_path)
    np.testing.assert_array_equal(np.bincount(dataset.labels), per_class[:-1])


def test_excluded_leaves_out_the_ten_worst_lights(tmp_path, monkeypatch):
    packing.write_zip(tmp_path / "yaleb/CroppedYale.zip", packing.yaleb_files(people=3, lights=13))
    packing.expect(monkeypatch, "yaleb", 3, 39)
    packing.expect(monkeypatch, "yaleb-excluded", 3, 9)
    dataset = load_dataset("yaleb-excluded", tmp_path)
    azimuths = [int(re.search(r"A\+(\d+)E", name)[1]) for name in dataset.image_names]
    assert azimuths == [0, 10, 20] * 3  # made-up lights stand at 0, 10, ..., 120 degrees
    assert dataset.identity != load_dataset("yaleb", tmp_path).identity


def test_the_ten_darkest_are_left_out(tmp_path, monkeypatch):
    levels = [7 * (5 * i % 13) for i in range(13)]  # in no order of lights
    files = {}
    for person in ("yaleB01", "yaleB02"):
        for i, level in enumerate(levels):
            picture = io.BytesIO()
            Image.new("L", (8, 8), level).save(picture, "PPM")
            files[f"CroppedYale/{person}/{person}_P00A+{10 * i:03d}E+00.pgm"] = picture.getvalue()
    packing.write_zip(tmp_path / "yaleb/CroppedYale.zip", files)
    packing.expect(monkeypatch, "yaleb", 2, 26)
    packing.expect(monkeypatch, "yaleb-lit", 2, 6)
    dataset = load_dataset("yaleb-lit", tmp_path)
    kept = {int(re.search(r"A\+(\d+)E", name)[1]) // 10 for name in dataset.image_names}
    assert kept == set(np.argsort(levels)[10:].tolist())
    assert np.bincount(dataset.labels).tolist() == [3, 3]


def test_the_light_angle_is_between_the_directions():
    """arccos(cos A cos E) is the angle to the axis of a light at azimuth A and elevation E."""
    for azimuth, elevation in ((0, 0), (35, -20), (-110, 40), (0, 90), (130, 20)):
        a, e = math.radians(azimuth), math.radians(elevation)
        light = np.array([math.cos(e) * math.sin(a), math.sin(e), math.cos(e) * math.cos(a)])
        name = f"yaleB01/yaleB01_P00A{azimuth:+04d}E{elevation:+03d}.pgm"
        assert yaleb._light_cosine(name) == pytest.approx(light @ [0, 0, 1], abs=1e-12)


def test_ties_go_by_file_name():
    names = [f"yaleB01/yaleB01_P00A{sign}{50 + i:03d}E+00.pgm" for sign in "+-" for i in range(7)]
    left_out = set(names) - yaleb.well_lit(sorted(names))
    pairs = {f"yaleB01/yaleB01_P00A{sign}{azimuth:03d}E+00.pgm" for sign in "+-" for azimuth in (52, 53, 54, 55, 56)}
    assert left_out == pairs  # five azimuths on both sides: no tie to break
    assert len(yaleb.well_lit(sorted(names[:7] + names[8:]))) == 3
    left_out = set(names[:13]) - yaleb.well_lit(sorted(names[:13]))  # without -56: 56, 55 ... 52, and one of +-51
    assert "yaleB01/yaleB01_P00A+051E+00.pgm" in left_out
    assert "yaleB01/yaleB01_P00A-051E+00.pgm" not in left_out


def test_identity_is_the_same_however_packed(tmp_path, monkeypatch):
    packing.expect(monkeypatch, "yaleb", 2, 24)
    packing.write_zip(tmp_path / "a/yaleb/CroppedYale.zip", YALEB)
    packing.write_folder(tmp_path / "b/yaleb", YALEB)
    first, second = load_dataset("yaleb", tmp_path / "a"), load_dataset("yaleb", tmp_path / "b")
    assert first.identity == second.identity
    assert re.fullmatch("[0-9a-f]{16}", first.identity)
    assert isinstance(first.images[0], ArchiveMember)


def test_any_folder_is_a_data_set(tmp_path):
    photos = tmp_path / "photos"
    packing.write_folder(photos, {f"{c}/{i}.png": packing.picture(i, "PNG") for c in ("dog", "cat") for i in range(3)})
    dataset = load_dataset(photos)
    assert (dataset.name, dataset.class_names) == ("photos", ("cat", "dog"))
    assert dataset.image_names == tuple(f"{c}/{i}.png" for c in ("cat", "dog") for i in range(3))
    np.testing.assert_array_equal(dataset.labels, [0, 0, 0, 1, 1, 1])
    assert load_dataset(str(photos)).identity == dataset.identity
    Image.new("L", (9, 9)).save(photos / "dog/1.png")
    assert load_dataset(photos).identity != dataset.identity


@pytest.mark.parametrize("name", LOADERS)
def test_an_absent_set_says_how_to_get_it(tmp_path, name):
    assert set(LOADERS) == set(CATALOGUE)
    remedy = f"ddlcn data fetch {name}" if CATALOGUE[name].downloads else "into the folder"
    with pytest.raises(FileNotFoundError, match=f"is not under {re.escape(str(tmp_path))}.*DDLCN_DATA.*{remedy}"):
        load_dataset(name, tmp_path)
    (tmp_path / CATALOGUE[name].folder).mkdir()
    with pytest.raises(FileNotFoundError, match=remedy):
        load_dataset(name, tmp_path)


def test_an_unknown_name():
    with pytest.raises(
        ValueError, match="unknown data set 'minst': choose one of yaleb, .*mnist, .*, or pass a folder"
    ):
        load_dataset("minst")


def test_portraits_are_not_for_showing(tmp_path, monkeypatch):
    packing.expect(monkeypatch, "caltech101", 3, 9)
    packing.write_folder(tmp_path / "caltech101", C101)
    dataset = load_dataset("caltech101", tmp_path)
    shown = [dataset.class_names[i] for i in range(3) if dataset.may_show(i)]
    assert shown == ["accordion", "ant"]
    assert CATALOGUE["ar"].shows_people
    assert CATALOGUE["yaleb"].shows_people

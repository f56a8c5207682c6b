"""Pictures of every kind become the same grey values; whatever cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from ddlcn.images import ImageReadError, name_images, read_image, read_images
from ddlcn.images.sizing import fit_size

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (30, 40, 3), dtype=np.uint8)
GREY = (RGB.astype(float) @ [0.299, 0.587, 0.114]) / 255


def smooth_picture(height: int, width: int) -> np.ndarray:
    """A colour picture without fine detail, so that resizing methods hardly differ. (H, W, 3) uint8"""
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = [np.sin(6 * x + 4 * y), np.cos(5 * y), np.sin(3 * x - 7 * y)]
    return np.stack([127 + 120 * wave for wave in waves], axis=2).astype(np.uint8)


@pytest.mark.parametrize("convert", [
    lambda rgb: rgb,
    lambda rgb: rgb.astype(np.uint16) * 257,
    lambda rgb: rgb / 255,
    lambda rgb: (rgb / 255).astype(np.float32),
    lambda rgb: Image.fromarray(rgb),
    lambda rgb: np.asfortranarray(rgb),
    lambda rgb: np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)]),
])  # fmt: skip
def test_every_kind_of_colour_image_gives_the_same_float_luma(convert):
    grey = read_image(convert(RGB))
    assert grey.dtype == np.float32
    np.testing.assert_allclose(grey, GREY, atol=1e-6)  # 1e-6: not rounded to 8 bits


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "webp"])
def test_lossless_file_equals_array(tmp_path, suffix):
    path = tmp_path / f"picture.{suffix}"
    Image.fromarray(RGB).save(path, **({"lossless": True} if suffix == "webp" else {}))
    np.testing.assert_array_equal(read_image(path), read_image(RGB))
    np.testing.assert_array_equal(read_image(str(path)), read_image(RGB))


@pytest.mark.parametrize("array", [
    RGB[..., 0], RGB[..., :1], RGB[..., 0] / 255, RGB[..., 0].astype(np.uint16) * 257,
])  # fmt: skip
def test_grey_arrays(array):
    np.testing.assert_allclose(read_image(array), RGB[..., 0] / 255, atol=1e-6)


def test_bool_array_and_one_bit_image():
    mask = RGB[..., 0] > 127
    np.testing.assert_array_equal(read_image(mask), mask.astype(np.float32))
    np.testing.assert_array_equal(read_image(Image.fromarray(mask)), mask.astype(np.float32))


def test_input_is_neither_changed_nor_shared():
    array = np.full((5, 5), 0.5, np.float32)
    array.setflags(write=False)
    grey = read_image(array)
    grey[:] = 0
    assert (array == 0.5).all()


def test_transparent_pixels_are_laid_on_white(tmp_path):
    rgba = np.zeros((4, 4, 4), np.uint8)
    rgba[:, 2:, 3] = 255
    rgba[0, 0, 3] = 51  # a fifth black
    expected = np.repeat([[1.0, 1.0, 0.0, 0.0]], 4, axis=0)
    expected[0, 0] = 0.8
    Image.fromarray(rgba).save(tmp_path / "rgba.png")
    Image.fromarray(rgba).convert("LA").save(tmp_path / "la.png")
    for image in (rgba, tmp_path / "rgba.png", tmp_path / "la.png"):
        np.testing.assert_allclose(read_image(image), expected, atol=1e-6)


def test_palette_with_and_without_transparency(tmp_path):
    indices = np.array([[0, 1], [2, 1]], np.uint8)
    picture = Image.fromarray(indices).convert("P")
    picture.putpalette([0, 0, 0, 255, 0, 0, 255, 255, 255])
    picture.save(tmp_path / "plain.png")
    picture.save(tmp_path / "transparent.png", transparency=0)
    picture.save(tmp_path / "transparent.gif", transparency=0)
    np.testing.assert_allclose(read_image(tmp_path / "plain.png"), [[0, 0.299], [1, 0.299]], atol=1e-6)
    for name in ("transparent.png", "transparent.gif"):
        np.testing.assert_allclose(read_image(tmp_path / name), [[1, 0.299], [1, 0.299]], atol=1e-6)


def test_sixteen_bit_files(tmp_path):
    deep = RNG.integers(0, 65536, (9, 7), dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    Image.fromarray(deep).save(tmp_path / "deep.tif")
    Image.fromarray(deep.astype(np.int32)).save(tmp_path / "deep32.tif")
    for name in ("deep.png", "deep.tif", "deep32.tif"):
        np.testing.assert_allclose(read_image(tmp_path / name), deep / 65535, atol=1e-6)


def test_cmyk_and_float_files(tmp_path):
    Image.fromarray(RGB).convert("CMYK").save(tmp_path / "ink.tif")
    np.testing.assert_allclose(read_image(tmp_path / "ink.tif"), GREY, atol=2 / 255)
    Image.fromarray(GREY.astype(np.float32)).save(tmp_path / "float.tif")
    np.testing.assert_allclose(read_image(tmp_path / "float.tif"), GREY, atol=1e-6)
    Image.fromarray((GREY * 255).astype(np.float32)).save(tmp_path / "range.tif")
    with pytest.raises(ImageReadError, match=r"range.tif.*\[0, 1\]"):
        read_image(tmp_path / "range.tif")
    Image.fromarray(np.full((3, 3), 70000, np.int32)).save(tmp_path / "int.tif")
    with pytest.raises(ImageReadError, match="int.tif.*0..65535"):
        read_image(tmp_path / "int.tif")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
@pytest.mark.parametrize("max_side", [None, 60])
def test_exif_orientation(tmp_path, orientation, suffix, max_side):
    upright = smooth_picture(300, 200)
    undo = {
        1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud,
        5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, 1),
        7: lambda a: np.rot90(a, 2).swapaxes(0, 1), 8: lambda a: np.rot90(a, -1),
    }  # fmt: skip
    stored = np.ascontiguousarray(undo[orientation](upright))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{suffix}"
    options = {"quality": 98} if suffix == "jpg" else {}
    Image.fromarray(stored).save(path, exif=exif, **options)
    grey = read_image(path, max_side=max_side)
    expected = read_image(upright, max_side=max_side)
    assert grey.shape == expected.shape
    np.testing.assert_allclose(grey, expected, atol=0.03 if suffix == "jpg" else 1e-3)
    with Image.open(path) as picture:
        np.testing.assert_allclose(read_image(picture), read_image(path), atol=1e-6)


def test_draft_decoding_never_goes_below_the_final_size(tmp_path, monkeypatch):
    picture = smooth_picture(1600, 2400)
    Image.fromarray(picture).save(tmp_path / "large.jpg", quality=95)
    decoded = []
    original = JpegImagePlugin.JpegImageFile.draft

    def draft(self, mode, size):
        result = original(self, mode, size)
        decoded.append(self.size)
        return result

    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "draft", draft)
    for max_side in (1500, 1201, 700, 300, 60):
        decoded.clear()
        grey = read_image(tmp_path / "large.jpg", max_side=max_side)
        assert max(grey.shape) == max_side
        assert max(decoded[0]) >= max_side
        np.testing.assert_allclose(grey, read_image(picture, max_side=max_side), atol=0.03)
    assert max(decoded[0]) < 2400  # the fast path was taken


@pytest.mark.parametrize(("size", "max_side", "min_side", "patch", "expected"), [
    ((600, 400), 300, None, 16, (300, 200)),
    ((600, 400), None, None, 16, (600, 400)),
    ((28, 28), 300, None, 16, (28, 28)),
    ((42, 30), 300, 90, 16, (126, 90)),
    ((600, 400), 300, 250, 16, (300, 200)),  # max_side wins over min_side
    ((8, 5), 300, None, 16, (26, 16)),       # smaller than the patch: enlarged, proportions kept
    ((500, 1), 300, None, 16, (300, 16)),    # a strip: its short side alone is stretched
    ((1, 60000), 300, None, 24, (24, 300)),
    ((1, 1), 300, None, 16, (16, 16)),
])  # fmt: skip
def test_size_rule(size, max_side, min_side, patch, expected):
    assert fit_size(*size, max_side, min_side or 1, patch) == expected
    image = np.full(size[::-1], 0.5, np.float32)
    grey = read_image(image, max_side=max_side, min_side=min_side, patch_size=patch)
    assert grey.shape == expected[::-1]
    np.testing.assert_allclose(grey, 0.5, atol=1e-5)


def test_reduction_is_antialiased_and_stays_in_range():
    stripes = np.tile([0.0, 1.0], (400, 200))
    np.testing.assert_allclose(read_image(stripes, max_side=100)[5:-5, 5:-5], 0.5, atol=0.02)
    edges = read_image(np.kron(RNG.random((20, 20)) > 0.5, np.ones((15, 15))), max_side=170)
    assert edges.min() == 0.0
    assert edges.max() == 1.0


def write_broken_files(folder: Path) -> dict[str, Path]:
    Image.fromarray(smooth_picture(200, 300)).save(folder / "whole.jpg")
    whole = (folder / "whole.jpg").read_bytes()
    files = {
        "No such file": folder / "missing.jpg",
        "truncated": folder / "cut.jpg",
        "not an image": folder / "text.jpg",
        "not an image, or": folder / "empty.png",
        "Is a directory": folder / "folder.jpg",
    }
    files["truncated"].write_bytes(whole[: len(whole) // 2])
    files["not an image"].write_text("hello")
    files["not an image, or"].write_bytes(b"")
    files["Is a directory"].mkdir()
    return files


def test_unreadable_files_are_named(tmp_path):
    for reason, path in write_broken_files(tmp_path).items():
        with pytest.raises(ImageReadError) as caught:
            read_image(path)
        message = str(caught.value)
        assert str(path) in message
        assert reason in message
        assert "\n" not in message


def test_damaged_png_and_lazy_pil_image(tmp_path):
    path = tmp_path / "damaged.png"
    Image.fromarray(RGB).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ImageReadError, match="damaged.png"):
        read_image(path)
    with Image.open(path) as picture, pytest.raises(ImageReadError, match="damaged.png"):
        list(read_images([picture]))


def test_pil_image_without_pixels():
    with pytest.raises(ImageReadError, match=r"images\[0\].*no pixels"):
        list(read_images([Image.new("L", (0, 5))]))


def test_decompression_bomb_is_an_unreadable_file(tmp_path, monkeypatch):
    Image.fromarray(RGB).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ImageReadError, match="bomb.png.*large.*MAX_IMAGE_PIXELS"):
        read_image(tmp_path / "bomb.png")


@pytest.mark.parametrize(("array", "words"), [
    (np.array([[0.0, 2.0]]), "from 0 to 2.*divide"),
    (np.array([[-0.1, 1.0]]), r"\[0, 1\]"),
    (np.array([[0.5, np.nan]]), r"\[0, 1\]"),
    (np.array([[0.5, np.inf]]), r"\[0, 1\]"),
    (np.zeros((4, 4, 3)) + [0.0, 0.0, 1.5], "1.5"),
    (np.zeros((3, 20, 20)), r"\(3, 20, 20\).*colours last"),
    (np.zeros(5), r"shape \(5,\)"),
    (np.zeros((2, 2, 2, 2)), "shape"),
    (np.zeros((0, 5)), "no pixels"),
    (np.zeros((4, 4), np.int64), r"int64.*astype\(np.uint8\)"),
    (np.zeros((4, 4), complex), "complex"),
    (np.array([["a"]]), "dtype"),
    ([[0.0, 1.0]], "list.*np.asarray"),
    (None, "NoneType"),
    (b"x.jpg", "bytes"),
])  # fmt: skip
def test_bad_arrays_get_one_sentence_that_names_them(array, words):
    with pytest.raises(ValueError, match=words) as caught:
        list(read_images([RGB, array], n_jobs=1))
    assert "images[1]" in str(caught.value)
    assert not isinstance(caught.value, ImageReadError)


def test_rounding_beyond_the_range_is_clipped():
    grey = read_image(np.array([[1 + 1e-7, -1e-7]]))
    np.testing.assert_array_equal(grey, [[1.0, 0.0]])


def test_stacks_lists_and_generators_are_the_same_images():
    stack = RNG.integers(0, 256, (5, 8, 9), dtype=np.uint8)
    expected = [image / 255 for image in stack]
    as_objects = np.empty(5, object)
    as_objects[:] = list(stack)
    for images in (
        stack,
        list(stack),
        tuple(stack),
        (image for image in stack),
        as_objects,
        stack[..., None],
    ):
        np.testing.assert_allclose(list(read_images(images)), expected, atol=1e-6)
    colour = RNG.integers(0, 256, (2, 8, 9, 3), dtype=np.uint8)
    np.testing.assert_array_equal(list(read_images(colour)), [read_image(image) for image in colour])


def test_generators_are_read_only_a_little_ahead():
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield GREY

    stream = read_images(endless(), n_jobs=2)
    assert next(stream).shape == GREY.shape
    stream.close()
    assert len(taken) <= 5


@pytest.mark.parametrize(("images", "words"), [
    ("photo.jpg", r"single str.*\[image\]"),
    (Path("photo.jpg"), r"\[image\]"),
    (Image.fromarray(RGB), r"\[image\]"),
    (GREY, r"\(30, 40\).*\[image\]"),
    (RGB, r"\(30, 40, 3\).*\[image\]"),
    (np.zeros(7), r"\(7,\)"),
    (12, r"int: pass \[image, ...\]"),
    (None, "NoneType"),
])  # fmt: skip
def test_a_single_image_by_mistake(images, words):
    with pytest.raises(ValueError, match=words):
        name_images(images)  # at once, not when the first image is asked for


@pytest.mark.parametrize("images", [[], (), iter(()), np.zeros((0, 8, 8))])
def test_no_images(images):
    with pytest.raises(ValueError, match="images is empty"):
        list(read_images(images))


class Member:
    """An image file that is not on the disk: a member of an archive, say."""

    def __init__(self, content: bytes, **attributes: str) -> None:
        self.content = content
        self.__dict__.update(attributes)

    def read_bytes(self) -> bytes:
        return self.content


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_bytes_of_a_file_equal_the_file(tmp_path, suffix):
    path = tmp_path / f"picture.{suffix}"
    Image.fromarray(smooth_picture(300, 400)).save(path)
    for options in ({}, {"max_side": 40}, {"min_side": 500}):  # 40: a JPEG is decoded at a fraction of its size
        np.testing.assert_array_equal(read_image(Member(path.read_bytes()), **options), read_image(path, **options))
    (first, second) = read_images([Member(path.read_bytes()), path], max_side=50)
    np.testing.assert_array_equal(first, second)


def test_bytes_that_are_no_image_are_named(tmp_path):
    with pytest.raises(ImageReadError, match="'set.zip/a.jpg': it is not an image"):
        read_image(Member(b"nothing", name="set.zip/a.jpg"))
    with pytest.raises(ImageReadError, match=r"'images\[1\]'"):
        list(read_images([RGB, Member(b"nothing")]))
    member = Member(b"", name="set.zip/b.jpg")
    member.read_bytes = lambda: (_ for _ in ()).throw(EOFError("the archive has become shorter"))
    with pytest.raises(ImageReadError, match="b.jpg': the archive has become shorter"):
        read_image(member)

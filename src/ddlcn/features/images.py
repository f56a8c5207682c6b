"""Pictures of every kind, to grey.

In: a path, an array or a PIL image, of any size. Out: a float32 array (H, W) of grey values in [0, 1], of the
size that the descriptors of DESIGN section 2 are computed on (longest side at most `max_side`).

Grey only: SIFT has no colour. Transparent pixels are laid on white, as on a page.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from ddlcn._threads import map_threads
from ddlcn._validation import check_count


@runtime_checkable
class HoldsFile(Protocol):
    """The bytes of an image file that is no file on the disk, such as a member of an archive."""

    @property
    def read_bytes(self) -> Callable[[], bytes]: ...


GreyImage: TypeAlias = NDArray[np.float32]
AnyImage: TypeAlias = "str | os.PathLike[str] | HoldsFile | NDArray[Any] | Image.Image"

# ITU-R BT.601 luma, as in PIL's convert("L") and MATLAB's rgb2gray.
LUMA = (0.299, 0.587, 0.114)
# Rounding of other people's arithmetic may leave [0, 1] by this much; it is clipped without a word.
SLACK = 1e-5
# A JPEG may be decoded at 1/2, 1/4 or 1/8, but not below this many times the final size: the final reduction
# then still sees enough pixels to antialias well (PIL's own `thumbnail` does the same, with the same number).
DRAFT_GAP = 2
# EXIF tag 0x0112, orientation: from 5 on, rows and columns are swapped.
EXIF_ORIENTATION, FIRST_SWAPPED = 0x0112, 5


class ImageReadError(ValueError):
    """A picture that cannot be read: missing, truncated, empty, not an image. The message names the file."""


def read_image(
    image: AnyImage,
    *,
    max_side: int | None = None,
    min_side: int | None = None,
    patch_size: int = 1,
    name: str = "image",
) -> GreyImage:
    """Read one picture as grey values.

    Parameters
    ----------
    image : path, object with `read_bytes()`, array or PIL image
        A file that PIL can read (EXIF orientation is applied), or an object that returns the bytes of one, such
        as a member of an archive (its `name` is used in messages, if it has one); or an array of shape (H, W),
        (H, W, 1), (H, W, 3) or (H, W, 4), of dtype bool, uint8, uint16 or float in [0, 1]. A fourth channel is
        opacity: the picture is laid on white.
    max_side : int, optional
        The longest side is reduced to this, antialiased.
    min_side : int, optional
        The shortest side is enlarged to this, but never so far that the longest exceeds `max_side`.
    patch_size : int, default 1
        No side leaves smaller than this. A small image is enlarged as by `min_side`; where `max_side` forbids
        that (a long thin strip) the short side alone is stretched.
    name : str
        What to call an image that has no file name, in messages.

    Returns
    -------
    grey : ndarray of shape (H, W), float32
        Values in [0, 1].

    Raises
    ------
    ImageReadError
        If a file cannot be read.
    ValueError
        If an array is not an image.
    """
    max_side = None if max_side is None else check_count("max_side", max_side)
    min_side = 1 if min_side is None else check_count("min_side", min_side)
    patch_size = check_count("patch_size", patch_size)
    if isinstance(image, str | os.PathLike):
        path = os.fspath(image)
        grey, (width, height) = _read_file(path, path, max_side, min_side, patch_size)
    elif isinstance(image, HoldsFile):
        called = str(getattr(image, "name", name))
        grey, (width, height) = _read_file(image, called, max_side, min_side, patch_size)
    else:
        if isinstance(image, Image.Image):
            grey = _read_pil(image, name)
        else:
            grey = _grey_from_array(image, name)
        width, height = fit_size(grey.shape[1], grey.shape[0], max_side, min_side, patch_size)
    if grey.shape != (height, width):
        # PIL's bicubic filter widens with the reduction, so that it antialiases. It overshoots at edges.
        resized = Image.fromarray(grey).resize((width, height), Image.Resampling.BICUBIC)
        grey = np.clip(np.asarray(resized), 0.0, 1.0)
    return grey


def read_images(
    images: Iterable[AnyImage] | NDArray[Any],
    *,
    max_side: int | None = None,
    min_side: int | None = None,
    n_jobs: int | None = None,
) -> Iterator[GreyImage]:
    """Read pictures lazily, in order, as `read_image` does, by `n_jobs` threads.

    Parameters
    ----------
    images : iterable of images, or array of shape (n, H, W) or (n, H, W, 3)
    max_side, min_side : int, optional
        See `read_image`.
    n_jobs : int, optional
        Threads; None means every core.

    Yields
    ------
    grey : ndarray of shape (H, W), float32
    """

    def read(named: tuple[str, AnyImage]) -> GreyImage:
        return read_image(named[1], max_side=max_side, min_side=min_side, name=named[0])

    return map_threads(read, name_images(images), n_jobs)


def name_images(images: Iterable[AnyImage] | NDArray[Any]) -> Iterator[tuple[str, AnyImage]]:
    """Go through the `images` argument of any function: pairs of a name for messages, and one image.

    Parameters
    ----------
    images : iterable of images, or array of shape (n, H, W) or (n, H, W, 1 | 3 | 4)
        Generators stay lazy.

    Returns
    -------
    named : iterator of (str, image)
        Not read yet. Raises ValueError at its end if there was no image at all.
    """
    if isinstance(images, str | bytes | os.PathLike | Image.Image):
        raise ValueError(f"images must be a list of images; got a single {type(images).__name__}: pass [image]")
    if isinstance(images, np.ndarray):
        is_list = images.ndim == 1 and images.dtype.kind in "OU"
        # A stack of grey pictures 1, 3 or 4 pixels wide is far less likely than one colour picture.
        is_stack = images.ndim == 4 or (images.ndim == 3 and images.shape[2] not in (1, 3, 4))
        if not is_list and not is_stack:
            raise ValueError(
                f"images must be a list of images or an array (n, H, W) or (n, H, W, 3); got an array of "
                f"shape {images.shape} and dtype {images.dtype}: pass a single image as [image]"
            )
    elif not hasattr(images, "__iter__"):
        kind = type(images).__name__
        raise ValueError(f"images must be a list of paths, arrays or PIL images; got {kind}: pass [image, ...]")
    return _number(images)


def fit_size(width: int, height: int, max_side: int | None, min_side: int, patch_size: int) -> tuple[int, int]:
    """The size (width, height) that a picture is resized to: see `read_image` for the rule."""
    short, long = max(1, min(width, height)), max(1, width, height)
    scale = max(1.0, max(min_side, patch_size) / short)
    if max_side is not None:
        scale = min(scale, max_side / long)
    return max(patch_size, round(width * scale)), max(patch_size, round(height * scale))


def _number(images: Iterable[AnyImage]) -> Iterator[tuple[str, AnyImage]]:
    index = -1
    for index, image in enumerate(images):
        yield f"images[{index}]", image
    if index < 0:
        raise ValueError("images is empty: pass at least one image")


def _read_file(
    file: str | HoldsFile, called: str, max_side: int | None, min_side: int, patch_size: int
) -> tuple[GreyImage, tuple[int, int]]:
    """Grey values of a file, perhaps decoded at a fraction of its size, and the (width, height) to reach."""
    try:
        with Image.open(file if isinstance(file, str) else io.BytesIO(file.read_bytes())) as picture:
            width, height = fit_size(*picture.size, max_side, min_side, patch_size)
            # Only JPEG listens. Mode None keeps the colours: files and arrays take the same way to grey.
            picture.draft(None, (DRAFT_GAP * width, DRAFT_GAP * height))
            picture.load()  # before asking for the orientation: TIFF applies and forgets its own
            if _orientation(picture) >= FIRST_SWAPPED:
                width, height = height, width
            return _grey_from_pil(picture), (width, height)
    except MemoryError:
        raise
    # Damaged files make PIL's readers raise errors of nearly every kind (OSError, SyntaxError, struct.error).
    except Exception as error:
        raise ImageReadError(f"cannot read image {called!r}: {_reason(error)}") from error


def _read_pil(picture: Image.Image, name: str) -> GreyImage:
    """Grey values of a PIL image, which is left as it was. PIL loads lazily: its file may fail only now."""
    try:
        return _grey_from_pil(picture)
    except MemoryError:
        raise
    except Exception as error:
        file = getattr(picture, "filename", "")
        called = f"{name} ({file!r})" if file else name
        raise ImageReadError(f"cannot read image {called}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image, or of a kind that PIL does not know"
    if isinstance(error, Image.DecompressionBombError):
        return f"it is suspiciously large ({error}); raise PIL.Image.MAX_IMAGE_PIXELS if you trust it"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # such as "No such file or directory", without the path again
    return " ".join(str(error).split()) or type(error).__name__


def _orientation(picture: Image.Image) -> int:
    try:
        return int(picture.getexif().get(EXIF_ORIENTATION, 1))
    except Exception:  # damaged EXIF data says nothing about the pixels
        return 1


def _grey_from_pil(picture: Image.Image) -> GreyImage:
    """Grey values (H, W) of a PIL image of any mode, upright."""
    if 0 in picture.size:
        raise ValueError(f"it has no pixels (size {picture.size[0]} x {picture.size[1]})")
    picture.load()  # first: a PNG would be loaded by asking for its orientation, and its failure pass unheard
    if 1 < _orientation(picture) <= 8:
        picture = ImageOps.exif_transpose(picture)
    mode = picture.mode
    if mode.startswith("I"):
        values = np.asarray(picture)
        if values.min() < 0 or values.max() > 65535:  # "I" has 32 bits, but is mostly used for 16
            raise ValueError("it holds integers outside 0..65535; save it with 8 or 16 bits per pixel")
        return _grey_from_array(values.astype(np.uint16), "it")
    if mode == "F":
        return _grey_from_array(np.asarray(picture), "it")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
    elif mode == "1":
        picture = picture.convert("L")
    elif mode not in ("L", "RGB"):
        picture = picture.convert("RGB")
    return _grey_from_array(np.asarray(picture), "it")


def _grey_from_array(array: Any, name: str) -> GreyImage:
    """Grey values (H, W) of an array (H, W[, 1 | 3 | 4])."""
    if not isinstance(array, np.ndarray):
        if isinstance(array, list | tuple) or not hasattr(array, "__array__"):
            raise ValueError(
                f"{name} must be a path, an array or a PIL image; got {type(array).__name__}: "
                f"convert it with np.asarray(...)"
            )
        array = np.asarray(array)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ValueError(
            f"{name} has shape {array.shape} where an image is (H, W), (H, W, 3) or (H, W, 4): "
            f"put rows first and colours last"
        )
    if array.size == 0:
        raise ValueError(f"{name} has no pixels (shape {array.shape}): leave it out")
    white = _white(array, name)
    if array.ndim == 2 or array.shape[2] == 1:
        grey = array.reshape(array.shape[:2]) / np.float32(white)
    else:
        grey = np.zeros(array.shape[:2], np.float32)
        for channel, weight in enumerate(LUMA):  # one at a time: no float copy of all colours of a large picture
            grey += array[..., channel] * np.float32(weight / white)
    if array.ndim == 3 and array.shape[2] == 4:
        alpha = array[..., 3] / np.float32(white)
        grey = grey * alpha + (1 - alpha)
    clipped: GreyImage = np.clip(grey, 0.0, 1.0).astype(np.float32, copy=False)
    return clipped


def _white(array: NDArray[Any], name: str) -> float:
    """The value that means white in an array of this dtype."""
    if array.dtype.kind == "f":
        low, high = float(array.min()), float(array.max())
        if not (low >= -SLACK and high <= 1 + SLACK):  # written so that NaN fails too
            raise ValueError(
                f"{name} holds values from {low:g} to {high:g} where floats must lie in [0, 1]: "
                f"divide it by the value that means white, or pass uint8"
            )
        return 1.0
    if array.dtype == np.bool_:
        return 1.0
    if array.dtype.kind == "u" and array.dtype.itemsize <= 2:
        return float(np.iinfo(array.dtype).max)
    raise ValueError(
        f"{name} has dtype {array.dtype} where bool, uint8, uint16 or float in [0, 1] is needed: "
        f"convert it, for example with .astype(np.uint8)"
    )

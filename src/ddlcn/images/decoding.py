"""Picture files, PIL images and arrays to plain arrays, upright: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4).

Used by both `images.grey` and `images.colour`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from ddlcn.images.formats import explain_format, prepare_reader
from ddlcn.images.variation import VirtualCopy


@runtime_checkable
class HoldsFile(Protocol):
    """An image file that is not on disk, such as a member of an archive."""

    @property
    def read_bytes(self) -> Callable[[], bytes]: ...


@dataclass(frozen=True, eq=False)
class Pixels:
    """What a file holds: pixels (H, W[, 3 | 4]), upright, and whether turning it upright swapped rows and columns."""

    array: NDArray[Any]
    swapped: bool


Recall: TypeAlias = Callable[[tuple[int, int], Callable[[], Pixels]], Pixels]


@dataclass(frozen=True, eq=False)
class DecodedOnce:
    """A picture file for somebody who reads it often.

    Attributes
    ----------
    file : path, or object with `read_bytes()`
    recall : function of ((width, height), function that decodes) -> Pixels
        Gives the pixels of that size that were kept, or calls the function and may keep what it returns. A JPEG can be
        decoded at several fractions of its size; any other file has one.
    """

    file: str | os.PathLike[str] | HoldsFile
    recall: Recall


AnyImage: TypeAlias = "str | os.PathLike[str] | HoldsFile | NDArray[Any] | Image.Image | VirtualCopy | DecodedOnce"
# From the (width, height) of a picture to its size after resizing.
Fit: TypeAlias = Callable[[int, int], tuple[int, int]]

# Floats may exceed [0, 1] by this much, from rounding; they are clipped silently.
SLACK = 1e-5
# A JPEG may be decoded at 1/2, 1/4 or 1/8, but not below this many times the final size: the final reduction
# then still has enough pixels to antialias well (PIL's `thumbnail` uses the same number).
DRAFT_GAP = 2
# EXIF tag 0x0112, orientation: from 5 on, rows and columns are swapped.
EXIF_ORIENTATION, FIRST_SWAPPED = 0x0112, 5


class ImageReadError(ValueError):
    """A picture that cannot be read: missing, truncated, empty, not an image. The message names the file."""


def decode(image: AnyImage, fit: Fit, name: str, convert: Callable[[Any, str], Any]) -> tuple[Any, tuple[int, int]]:
    """Decode a picture to an array; also returns the (width, height) to resize it to.

    Parameters
    ----------
    image : path, object with `read_bytes()`, array or PIL image
    fit : function of (width, height)
    name : str
        Name in messages of an image without a file name.
    convert : function of an array (H, W[, 1 | 3 | 4]) and a name
        Converts to grey or colour; raises ValueError for what is not an image.

    Raises
    ------
    ImageReadError
        If a file cannot be read.
    """
    if isinstance(image, VirtualCopy):
        array, size = decode(image.image, fit, name, convert)
        return image.vary(array), size
    recall: Recall = _decode_now
    if isinstance(image, DecodedOnce):
        recall, image = image.recall, image.file
    if isinstance(image, str | os.PathLike):
        path = os.fspath(image)
        return _read_file(path, path, fit, convert, recall)
    if isinstance(image, HoldsFile):
        return _read_file(image, str(getattr(image, "name", name)), fit, convert, recall)
    array = _read_pil(image, name, convert) if isinstance(image, Image.Image) else convert(image, name)
    return array, fit(array.shape[1], array.shape[0])


def _read_file(
    file: str | HoldsFile, label: str, fit: Fit, convert: Callable[[Any, str], Any], recall: Recall
) -> tuple[Any, tuple[int, int]]:
    """The pixels of a file, possibly decoded at a fraction of its size, and the (width, height) to resize to."""
    prepare_reader(label)
    try:
        with Image.open(file if isinstance(file, str) else io.BytesIO(file.read_bytes())) as picture:
            width, height = fit(*picture.size)
            # Only JPEG supports this. Mode None keeps the colours: files and arrays are treated alike.
            picture.draft(None, (DRAFT_GAP * width, DRAFT_GAP * height))
            pixels = recall(picture.size, lambda: decode_pixels(picture))
            return convert(pixels.array, "it"), (height, width) if pixels.swapped else (width, height)
    except MemoryError:
        raise
    # Damaged files make PIL's readers raise errors of nearly every kind (OSError, SyntaxError, struct.error).
    except Exception as error:
        why = (isinstance(error, UnidentifiedImageError) and explain_format(label)) or _reason(error)
        raise ImageReadError(f"cannot read image {label!r}: {why}") from error


def decode_pixels(picture: Image.Image) -> Pixels:
    """All pixels of an opened file: the expensive step."""
    picture.load()  # before reading the orientation: TIFF applies and removes its own
    swapped = _orientation(picture) >= FIRST_SWAPPED
    return Pixels(to_array(picture), swapped)


def _decode_now(_: tuple[int, int], decode: Callable[[], Pixels]) -> Pixels:
    return decode()


def _read_pil(picture: Image.Image, name: str, convert: Callable[[Any, str], Any]) -> Any:
    """The pixels of a PIL image, which is not changed. PIL loads lazily: its file may fail only now."""
    try:
        return convert(to_array(picture), "it")
    except MemoryError:
        raise
    except Exception as error:
        file = getattr(picture, "filename", "")
        label = f"{name} ({file!r})" if file else name
        raise ImageReadError(f"cannot read image {label}: {_reason(error)}") from error


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
    except Exception:  # damaged EXIF data does not affect the pixels
        return 1


def to_array(picture: Image.Image) -> NDArray[Any]:
    """The pixels (H, W[, 3 | 4]) of a PIL image of any mode, upright."""
    if 0 in picture.size:
        raise ValueError(f"it has no pixels (size {picture.size[0]} x {picture.size[1]})")
    picture.load()  # first: reading the orientation would load a PNG, and hide its failure
    if 1 < _orientation(picture) <= 8:
        picture = ImageOps.exif_transpose(picture)
    mode = picture.mode
    if mode.startswith("I"):
        values = np.asarray(picture)
        if values.min() < 0 or values.max() > 65535:  # "I" has 32 bits, but is mostly used for 16
            raise ValueError("it holds integers outside 0..65535; save it with 8 or 16 bits per pixel")
        return values.astype(np.uint16)
    if mode == "F":
        return np.asarray(picture)
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
    elif mode == "1":
        picture = picture.convert("L")
    elif mode not in ("L", "RGB"):
        picture = picture.convert("RGB")
    return np.asarray(picture)


def check_pixels(array: Any, name: str) -> NDArray[Any]:
    """Return the array if it has the shape of an image (H, W[, 1 | 3 | 4]); raises ValueError if not."""
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
    pixels: NDArray[Any] = array
    return pixels


def find_white(array: NDArray[Any], name: str) -> float:
    """Return the value of white in an array of this dtype."""
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

"""Uploads. In: untrusted bytes. Out: images that are safe to process; everything else is refused with a reason."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

# Formats that browsers and cameras send; PIL reads many more, with less tested decoders.
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
Image.init()  # load all readers: naming one that is not yet loaded is an error
# Images with a side below this cannot be recognised.
SMALLEST_SIDE = 8


class RefusedError(ValueError):
    """An upload that is refused; the message is for the sender."""


@dataclass(frozen=True)
class Limits:
    """Limits of one upload."""

    max_bytes: int = 20_000_000
    max_request_bytes: int = 100_000_000  # all images of one request, which are held in memory
    max_pixels: int = 50_000_000
    max_images: int = 32
    max_seconds: float = 30.0


def open_upload(content: bytes, limits: Limits) -> Image.Image:
    """Decode an uploaded picture; its size is checked before decoding.

    Raises
    ------
    RefusedError
    """
    if not content:
        raise RefusedError("the file is empty")
    if len(content) > limits.max_bytes:
        raise RefusedError(f"the file is larger than {limits.max_bytes // 1_000_000} MB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            picture = Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise RefusedError(_too_large(limits)) from None
    except UnidentifiedImageError:
        raise RefusedError(
            "this is not an image, or its format is not supported: send JPEG, PNG, GIF or WebP"
        ) from None
    except Exception:
        raise RefusedError("the image is damaged") from None
    if picture.width * picture.height > limits.max_pixels:
        raise RefusedError(_too_large(limits))
    if min(picture.size) < SMALLEST_SIDE:
        raise RefusedError(f"the image is too small: {picture.width} x {picture.height} pixels")
    try:
        picture.load()
    except Exception:  # damaged files make PIL's readers raise errors of nearly every kind
        raise RefusedError("the image is damaged or cut short") from None
    return picture


def _too_large(limits: Limits) -> str:
    return f"the image has more than {limits.max_pixels // 1_000_000} million pixels"

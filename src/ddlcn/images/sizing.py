"""Bring a picture to the size that its descriptors are computed on, in grey or in colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ddlcn.images.decoding import AnyImage, decode
from ddlcn.images.variation import VirtualCopy
from ddlcn.utils.validation import check_count


def read_sized(
    image: AnyImage,
    convert: Callable[[Any, str], Any],
    resize: Callable[[Any, tuple[int, int]], Any],
    max_side: int | None,
    min_side: int | None,
    patch_size: int,
    name: str,
) -> Any:
    """One picture, decoded, converted (see `decoding.decode`) and brought to size, as described in `read_image`.

    Parameters
    ----------
    resize : function of an array (H, W[, 3]) and (width, height)
    """
    if isinstance(image, VirtualCopy):  # varied last: a small picture is enlarged first, and stays sharp
        original = read_sized(image.image, convert, resize, max_side, min_side, patch_size, name)
        return image.vary(original)
    max_side = None if max_side is None else check_count("max_side", max_side)
    min_side = 1 if min_side is None else check_count("min_side", min_side)
    patch_size = check_count("patch_size", patch_size)

    def fit(width: int, height: int) -> tuple[int, int]:
        return fit_size(width, height, max_side, min_side, patch_size)

    array, (width, height) = decode(image, fit, name, convert)
    return array if array.shape[:2] == (height, width) else resize(array, (width, height))


def fit_size(width: int, height: int, max_side: int | None, min_side: int, patch_size: int) -> tuple[int, int]:
    """Return the size (width, height) that a picture is resized to, as described in `read_image`."""
    short, long = max(1, min(width, height)), max(1, width, height)
    scale = max(1.0, max(min_side, patch_size) / short)
    if max_side is not None:
        scale = min(scale, max_side / long)
    return max(patch_size, round(width * scale)), max(patch_size, round(height * scale))

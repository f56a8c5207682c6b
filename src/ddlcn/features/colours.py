"""Pictures of every kind, to colours, for networks: bytes (H, W, 3), the whole picture stretched to a given size."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.features.decoding import AnyImage, check_pixels, decode, find_white

ColourImage: TypeAlias = NDArray[np.uint8]


def read_colours(
    image: AnyImage, sizes: tuple[tuple[int, int], ...], name: str = "image"
) -> tuple[list[ColourImage], float]:
    """One picture at several sizes, read once.

    Parameters
    ----------
    image : path, object with `read_bytes()`, array or PIL image
        As in `features.read_image`; grey pictures have three equal colours, transparent ones are laid on white.
    sizes : tuple of (width, height)
        The whole picture is stretched to each, antialiased; its proportions are not kept.
    name : str
        What to call an image that has no file name, in messages.

    Returns
    -------
    colours : list of ndarrays (height, width, 3), uint8
    proportion : float
        Width of the picture itself, divided by its height.
    """
    largest = (max(width for width, _ in sizes), max(height for _, height in sizes))
    colours, _ = decode(image, lambda *_: largest, name, _to_colours)
    picture = Image.fromarray(colours)
    resized = [np.asarray(picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)) for size in sizes]
    return resized, picture.width / picture.height


def read_picture(image: AnyImage, name: str = "image") -> ColourImage:
    """One picture in its own size, in colours: (H, W, 3)."""
    colours: ColourImage = decode(image, lambda width, height: (width, height), name, _to_colours)[0]
    return colours


def _to_colours(array: Any, name: str) -> ColourImage:
    """Colours (H, W, 3) of an array (H, W[, 1 | 3 | 4]) of any dtype that an image may have."""
    array = check_pixels(array, name)
    white = find_white(array, name)
    if array.ndim == 2:
        array = array[..., None]
    if array.shape[2] == 4:
        opacity = array[..., 3:] / np.float32(white)
        array, white = array[..., :3] / np.float32(white) * opacity + (1 - opacity), 1.0
    if array.dtype != np.uint8:
        array = np.round(np.clip(array / np.float32(white), 0.0, 1.0) * np.float32(255)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(array, (*array.shape[:2], 3)))

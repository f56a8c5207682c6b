"""Pictures to colour arrays (H, W, 3).

For networks: uint8, the whole picture stretched to a given size. For descriptors: values in [0, 1], sized as grey ones.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.images.decoding import AnyImage, check_pixels, decode, find_white
from ddlcn.images.sizing import read_sized

ColourImage: TypeAlias = NDArray[np.uint8]


def read_colours(
    image: AnyImage, sizes: tuple[tuple[int, int] | int, ...], name: str = "image"
) -> tuple[list[ColourImage], float]:
    """Read one picture at several sizes.

    Parameters
    ----------
    image : path, object with `read_bytes()`, array or PIL image
        As in `images.read_image`; grey pictures have three equal colours, transparent ones are laid on white.
    sizes : tuple of (width, height) or int
        The whole picture is stretched to each, antialiased. A single number is the longest side of a picture that
        keeps its proportions.
    name : str
        Name in messages of an image without a file name.

    Returns
    -------
    colours : list of ndarrays (height, width, 3), uint8
    proportion : float
        Width of the original picture divided by its height.
    """
    sides = [(size, size) if isinstance(size, int) else size for size in sizes]
    largest = (max(width for width, _ in sides), max(height for _, height in sides))
    colours, _ = decode(image, lambda *_: largest, name, _to_colours)
    picture = Image.fromarray(colours)
    proportion = picture.width / picture.height
    goals = [fit_proportion(proportion, size) if isinstance(size, int) else size for size in sizes]
    resized = [np.asarray(picture.resize(goal, Image.Resampling.BICUBIC, reducing_gap=3.0)) for goal in goals]
    return resized, proportion


def fit_proportion(proportion: float, side: int) -> tuple[int, int]:
    """The (width, height) of a picture of that proportion (width / height) whose longest side is `side`."""
    return max(1, round(side * min(1.0, proportion))), max(1, round(side / max(1.0, proportion)))


def read_colour_values(
    image: AnyImage,
    *,
    max_side: int | None = None,
    min_side: int | None = None,
    patch_size: int = 1,
    name: str = "image",
) -> NDArray[np.float32]:
    """Read one picture in colour, sized as `read_image` does it: float32 (H, W, 3), values in [0, 1]."""
    colours: ColourImage = read_sized(image, _to_colours, _resize, max_side, min_side, patch_size, name)
    return np.asarray(colours / np.float32(255), np.float32)


def _resize(colours: ColourImage, size: tuple[int, int]) -> ColourImage:
    return np.asarray(Image.fromarray(colours).resize(size, Image.Resampling.BICUBIC))


def read_picture(image: AnyImage, name: str = "image") -> ColourImage:
    """Read one picture in its original size, in colour: (H, W, 3)."""
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

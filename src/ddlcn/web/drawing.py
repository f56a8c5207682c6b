"""Explanations as pictures: heat maps over images, patches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ddlcn.images import read_image

Array = NDArray[Any]

# For and against: colours that are distinct for red-green colour blindness.
FOR, AGAINST = np.array([230, 97, 1]), np.array([0, 103, 163])
# Longest side of a drawn picture.
SIDE = 480
# Heat at or above this quantile has the full colour: otherwise a few strong patches would leave the others pale.
FULL = 0.99


def find_frame(descriptors: Any, image: Any) -> Any:
    """The picture that heat maps lie on: the image, or what is drawn on it, where that was centred and scaled first."""
    if not getattr(descriptors, "centre_ink", False):
        return image
    grey, border = descriptors.read(image), descriptors.border  # heat maps have no border
    return np.clip(grey[border : len(grey) - border, border : grey.shape[1] - border], 0.0, 1.0)


def draw_heat(image: Any, heat: Array, limit: float) -> Image.Image:
    """The picture in faint grey, coloured where it supports a class (orange) or counts against it (blue).

    Parameters
    ----------
    image : path, array or PIL image
        From `find_frame`.
    heat : ndarray (H, W)
        From `Explanation.heat_map`.
    limit : float
        The heat that has the full colour.
    """
    height, width = heat.shape
    scale = SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    grey = np.asarray(Image.fromarray(read_image(image)).resize(size, Image.Resampling.BICUBIC))
    strength = np.asarray(Image.fromarray(heat.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)) / limit
    base = 255 * (0.35 + 0.65 * np.clip(grey, 0, 1))[..., None]  # faint, for contrast with the colours
    colour = np.where(strength[..., None] > 0, FOR, AGAINST)
    share = 0.75 * np.clip(np.abs(strength), 0, 1)[..., None]
    return Image.fromarray(np.round((1 - share) * base + share * colour).astype(np.uint8))


def find_limit(*heats: Array) -> float:
    """The heat that has the full colour, common to several heat maps."""
    return float(np.quantile(np.abs(np.concatenate([heat.ravel() for heat in heats])), FULL)) or 1.0


def draw_picture(image: Any, side: int = SIDE) -> Image.Image:
    """The picture, in colour if it has any, scaled to `side`."""
    if hasattr(image, "__array__") or isinstance(image, list):
        picture = Image.fromarray(np.round(255 * np.clip(read_image(image), 0, 1)).astype(np.uint8))
    else:
        opened = image if isinstance(image, Image.Image) else Image.open(image)
        opened.draft("RGB", (2 * side, 2 * side))
        picture = ImageOps.exif_transpose(opened)
    picture = picture.convert("RGB")
    scale = side / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.resize(size, Image.Resampling.BICUBIC)

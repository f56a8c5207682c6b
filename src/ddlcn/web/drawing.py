"""Explanations as pictures: heat maps over images, atoms as orientation glyphs, patches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ddlcn.engines.cpu.sift import N_CELLS, N_ORIENTATIONS
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


def draw_atom(atom: Array, side: int = 64) -> str:
    """An atom of dense SIFT as SVG: in each of 4 x 4 cells a line along the edge of every orientation.

    Parameters
    ----------
    atom : ndarray (128,)
        Orientation runs fastest, then the cell's row, then the cell's column.
    """
    strengths = np.maximum(atom, 0.0).reshape(N_CELLS, N_CELLS, N_ORIENTATIONS)  # columns, rows, orientations
    largest = strengths.max() or 1.0
    cell = side / N_CELLS
    lines = []
    for column in range(N_CELLS):
        for row in range(N_CELLS):
            x, y = (column + 0.5) * cell, (row + 0.5) * cell
            for a in range(N_ORIENTATIONS):
                length = 0.5 * cell * strengths[column, row, a] / largest
                if length < 0.04 * cell:
                    continue
                # An edge runs across its gradient, and lies on the side that the gradient points to.
                angle = 2 * math.pi * a / N_ORIENTATIONS
                dx, dy = -math.sin(angle) * length, math.cos(angle) * length
                shift_x, shift_y = 0.12 * cell * math.cos(angle), 0.12 * cell * math.sin(angle)
                lines.append(
                    f'<line x1="{x + shift_x - dx:.1f}" y1="{y + shift_y - dy:.1f}" '
                    f'x2="{x + shift_x + dx:.1f}" y2="{y + shift_y + dy:.1f}"/>'
                )
    grid = "".join(
        f'<path d="M{i * cell:.1f} 0V{side}M0 {i * cell:.1f}H{side}" stroke="var(--line)"/>' for i in range(N_CELLS + 1)
    )
    return (
        f'<svg class="glyph" viewBox="0 0 {side} {side}" width="{side}" height="{side}" role="img" '
        f'aria-label="orientations of an atom">{grid}<g stroke="currentColor" stroke-width="1.6" '
        f'stroke-linecap="round">{"".join(lines)}</g></svg>'
    )

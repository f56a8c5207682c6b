"""Centre and scale what is drawn: grey values in, the same drawing at a standard place and size out.

For letters, signs and sketches on an even background, where the place on the sheet and the size say nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from ddlcn.images.grey import GreyImage

# Standard size: root mean square distance of the ink from its centre, as a share of the shorter side. Larger and
# smaller ones were tried on Omniglot's background alphabets (docs/few_images.md).
RADIUS = 0.25
# Fainter ink is noise of the background.
FAINT = 0.1
# A drawing is not enlarged or reduced further than this: a dot stays a dot.
MAX_SCALE = 4.0


def centre_ink(grey: GreyImage) -> NDArray[np.float32]:
    """Move and scale a drawing so that its ink has a standard centre and spread; its proportions stay.

    Parameters
    ----------
    grey : ndarray (H, W), float32
        Values in [0, 1]; dark on light or light on dark.

    Returns
    -------
    ndarray (H, W), float32
        What lies outside the picture has the value of its background. A picture without ink stays as it is.
    """
    background = find_background(grey)
    ink = np.abs(grey - background)
    ink[ink < FAINT] = 0.0
    total = float(ink.sum())
    if total == 0.0:
        return grey
    height, width = grey.shape
    rows, columns = np.arange(height), np.arange(width)
    by_row, by_column = ink.sum(axis=1), ink.sum(axis=0)
    centre = np.array([by_row @ rows, by_column @ columns]) / total
    spread = np.sqrt((by_row @ np.square(rows - centre[0]) + by_column @ np.square(columns - centre[1])) / total)
    scale = float(np.clip(spread / (RADIUS * min(height, width)), 1 / MAX_SCALE, MAX_SCALE))
    places = [centre[axis] + scale * (np.arange(n) - (n - 1) / 2) for axis, n in enumerate((height, width))]
    moved = map_coordinates(grey, np.meshgrid(*places, indexing="ij"), order=1, mode="constant", cval=background)
    return np.asarray(moved, np.float32)


def find_background(grey: GreyImage) -> float:
    """The median grey value along the edge of a picture (H, W)."""
    return float(np.median(take_edge(grey)))


def take_edge(grey: GreyImage) -> NDArray[np.float32]:
    """The pixels along the edge of a picture (H, W): (2 (H + W),), corners twice."""
    return np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])

"""Pictures as small vectors, to compare them by eye: made while a file is checked, so that it is decoded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.images import read_image

# Side of a thumbnail in pixels.
SIDE = 24


def make_thumbnail(path: Path) -> NDArray[np.float32]:
    """Read a picture file and return its thumbnail (SIDE * SIDE,), with mean zero and unit norm.

    Flat pictures give zeros, which match nothing. The whole file is decoded: one that is damaged raises ImageReadError.
    """
    grey = Image.fromarray(read_image(path, max_side=8 * SIDE))
    values: NDArray[Any] = np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BOX), np.float64).ravel()
    values = values - values.mean()
    norm = np.linalg.norm(values)
    return (values / norm if norm > 0.01 else np.zeros_like(values)).astype(np.float32)

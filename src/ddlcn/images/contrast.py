"""Take the light out of a picture: grey values in, the same picture with even contrast out.

For faces under a lamp, scans, shadows: two pictures of the same thing then differ mostly by their light. Not for
photographs of things, where strong edges mean more than weak ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from ddlcn.images.grey import GreyImage
from ddlcn.utils.validation import check_choice

# Pixels that count as near, and the deviation below which a neighbourhood is flat: chosen on folds of training faces of
# about 100 pixels a side (docs/few_images.md); 2, 3, 4 and 6 pixels were tried.
SIGMA, FLAT = 2.0, 0.01


def even_contrast(grey: GreyImage, kind: str) -> NDArray[np.float32]:
    """Even out the contrast of a picture.

    Parameters
    ----------
    grey : ndarray (H, W), float32
        Values in [0, 1].
    kind : str
        "none": as it is. "local": minus the mean of the neighbourhood, divided by its standard deviation. "log":
        logarithm, so that a shadow, which multiplies, only adds a constant.

    Returns
    -------
    ndarray (H, W), float32
        "none" and "log" in [0, 1]; "local" has mean 0 and deviation 1, about.
    """
    return _KINDS[check_choice("contrast", kind, CONTRASTS)](grey)


def _localise(grey: GreyImage) -> NDArray[np.float32]:
    difference = grey - _blur(grey)
    deviation = np.sqrt(_blur(difference * difference))
    return np.asarray(difference / (deviation + np.float32(FLAT)), np.float32)


def _blur(values: NDArray[np.float32]) -> NDArray[np.float32]:
    blurred: NDArray[np.float32] = gaussian_filter(values, SIGMA, mode="nearest", truncate=3.0)
    return blurred


def _take_log(grey: GreyImage) -> NDArray[np.float32]:
    darkest = np.float32(np.log(FLAT))
    logs: NDArray[np.float32] = (np.log(grey + np.float32(FLAT)) - darkest) / (np.log1p(np.float32(FLAT)) - darkest)
    return logs


_KINDS: Mapping[str, Callable[[GreyImage], NDArray[np.float32]]] = {
    "none": lambda grey: grey,
    "local": _localise,
    "log": _take_log,
}
CONTRASTS = tuple(_KINDS)

"""What every feature extractor hands on: the local descriptors of one image and where they lie.

This is the `X` of docs/method.md (rows are items) with the positions that pooling needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Descriptors:
    """Local descriptors of one image.

    Parameters
    ----------
    values : ndarray of shape (n, m), float32
        One descriptor per row; dense SIFT has m = 128.
    xy : ndarray of shape (n, 2), float32
        Centre of each patch, (x, y) in pixels, 0-based: the top left pixel is (0, 0).
    image_shape : tuple (H, W)
        Size of the image that the positions refer to, after resizing.
    sizes : ndarray of shape (n,), float32, optional
        Side of each patch in pixels, for drawing; None where patches have no size.
    whole : ndarray of shape (s,), float32, optional
        Responses, none negative, that describe the image as a whole: the mean over its patches of what
        `features.respond(image)` (n, s) gives. Becomes part of the image's feature, beside the pooled codes.
    """

    values: NDArray[np.float32]
    xy: NDArray[np.float32]
    image_shape: tuple[int, int]
    sizes: NDArray[np.float32] | None = None
    whole: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.xy.shape != (len(self.values), 2):
            raise ValueError(
                f"Descriptors needs values of shape (n, m) and xy of shape (n, 2); "
                f"got {self.values.shape} and {self.xy.shape}"
            )
        if self.sizes is not None and self.sizes.shape != (len(self.values),):
            raise ValueError(f"Descriptors needs sizes of shape ({len(self.values)},); got {self.sizes.shape}")
        if len(self.image_shape) != 2:
            raise ValueError(f"Descriptors needs image_shape = (H, W); got {self.image_shape!r}")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n, m = self.values.shape
        return f"Descriptors({n} of {m} dimensions, image {self.image_shape[0]} x {self.image_shape[1]})"

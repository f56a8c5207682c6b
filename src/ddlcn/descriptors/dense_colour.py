"""Dense colour: how light and colour are spread over each patch (docs/method.md, "Descriptors").

SIFT sees edges and nothing of their colour. Flowers, stained cells, fruit and fields differ by it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.dense import DenseDescriptors, check_grid, place_patches
from ddlcn.descriptors.store import Extracted
from ddlcn.images import AnyImage
from ddlcn.images.colour import read_colour_values
from ddlcn.images.grey import LUMA

Array = NDArray[Any]

# Cells of a patch along each side, as of SIFT.
CELLS = 4
# Red, green, blue to red against green, yellow against blue, and light.
OPPONENT = np.array([[1 / 2, -1 / 2, 0], [1 / 4, 1 / 4, -1 / 2], [1 / 3, 1 / 3, 1 / 3]])
# How much the two colours count beside light: most pictures have little of them. 2 and 4 were tried on training folds
# (docs/few_images.md).
CHROMA = 4.0
# Patches of even middle grey are small vectors: those below this norm are not raised to 1.
FLAT = 0.05


class DenseColour(DenseDescriptors):
    """Mean and deviation of light and of two colours in 4 x 4 cells of each patch: 96 dimensions, of unit norm.

    "Local colour statistics", as Fisher vectors use them beside SIFT (Perronnin, Sanchez and Mensink, ECCV 2010), in
    opponent colours. Of grey pictures only the light is left.

    Parameters
    ----------
    patch_size, step, max_side, min_side, n_jobs
        As of `DenseSIFT`.

    Examples
    --------
    >>> import numpy as np
    >>> from ddlcn import DenseColour
    >>> images = np.random.default_rng(0).random((2, 40, 40, 3))
    >>> DenseColour().transform(images)
    [Descriptors(9 of 96 dimensions, image 40 x 40), Descriptors(9 of 96 dimensions, image 40 x 40)]
    """

    def __init__(
        self,
        patch_size: int | tuple[int, ...] = 16,
        step: int = 8,
        max_side: int | None = 300,
        min_side: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.patch_size = patch_size
        self.step = step
        self.max_side = max_side
        self.min_side = min_side
        self.n_jobs = n_jobs

    def extract(self, image: AnyImage, name: str = "image") -> Extracted:
        """All of the work, as `descriptors.store` keeps it: the descriptors, and the image in grey bytes."""
        colours = self._read(image, name)
        sizes, step, *_ = check_grid(self.patch_size, self.step, self.max_side, self.min_side)
        return Extracted(describe_colours(colours, sizes, step), np.round(255.0 * to_grey(colours)).astype(np.uint8))

    def cache_key(self) -> Hashable:
        """What the descriptors of an image depend on; raises ValueError if a parameter is wrong."""
        return ("DenseColour", *check_grid(self.patch_size, self.step, self.max_side, self.min_side))

    def read(self, image: AnyImage, name: str = "image") -> NDArray[np.float32]:
        """One image in grey values (H, W) in [0, 1], of the size that it is described at."""
        return to_grey(self._read(image, name))

    def _read(self, image: AnyImage, name: str) -> NDArray[np.float32]:
        sizes, _, max_side, min_side = check_grid(self.patch_size, self.step, self.max_side, self.min_side)
        return read_colour_values(image, max_side=max_side, min_side=min_side, patch_size=max(sizes), name=name)


def describe_colours(colours: NDArray[np.float32], patch_sizes: tuple[int, ...], step: int) -> Descriptors:
    """Dense colour of one image (H, W, 3), values in [0, 1], that is at least as large as its patches."""
    height, width = colours.shape[:2]
    channels = colours.astype(np.float64) @ OPPONENT.T * (CHROMA, CHROMA, 1.0) - (0.0, 0.0, 0.5)
    # Sums over everything above and to the left: the sum over any cell is four of them.
    sums = np.zeros((height + 1, width + 1, 6))
    sums[1:, 1:] = np.concatenate([channels, channels**2], axis=2).cumsum(axis=0).cumsum(axis=1)
    grids, xy, sizes = place_patches((height, width), patch_sizes, step)
    values = [_describe_grid(sums, size, tops, lefts) for size, (tops, lefts) in zip(patch_sizes, grids, strict=True)]
    joined = np.concatenate(values)
    joined /= np.maximum(np.linalg.norm(joined, axis=1, keepdims=True), FLAT)
    return Descriptors(joined.astype(np.float32), xy, (height, width), sizes)


def _describe_grid(sums: Array, patch_size: int, tops: range, lefts: range) -> Array:
    """Means and deviations (n, 96) in the cells of the patches of one grid, from running sums (H + 1, W + 1, 6)."""
    edges = np.round(np.arange(CELLS + 1) * patch_size / CELLS).astype(int)
    rows, columns = np.array(tops)[:, None] + edges, np.array(lefts)[:, None] + edges
    corners = sums[rows[:, None, :, None], columns[None, :, None, :]]  # (tops, lefts, 5, 5, 6)
    totals = np.diff(np.diff(corners, axis=2), axis=3)
    averages = totals / np.outer(np.diff(edges), np.diff(edges))[..., None]
    means, squares = averages[..., :3], averages[..., 3:]
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return np.concatenate([means, deviations], axis=-1).reshape(len(tops) * len(lefts), -1)


def to_grey(colours: NDArray[np.float32]) -> NDArray[np.float32]:
    """Grey values (H, W) of colours (H, W, 3)."""
    return np.asarray(colours @ np.asarray(LUMA, np.float32))

"""Dense SIFT: images in, `Descriptors` out (docs/method.md, "Descriptors").

Thin over two functions: `read_image` brings a picture to grey and to size, the kernels of `engines.cpu.sift`
describe it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.dense import DenseDescriptors, check_grid, place_patches
from ddlcn.descriptors.store import Extracted
from ddlcn.images import AnyImage, GreyImage, read_image
from ddlcn.images.contrast import CONTRASTS, even_contrast
from ddlcn.images.ink import centre_ink
from ddlcn.utils.validation import check_choice, check_count


class DenseSIFT(DenseDescriptors):
    """SIFT descriptors on a regular grid, of one or several patch sizes.

    Greyscale only: SIFT has no colour. Every image gives at least one descriptor per patch size, for an image
    smaller than the largest patch is enlarged to it.

    Parameters
    ----------
    patch_size : int or tuple of int, default 16
        Side of the square patches in pixels, at least 4. Several sizes give several grids on the same image,
        one after the other.
    step : int, default 6
        Pixels from one patch to the next, both ways.
    max_side : int or None, default 300
        Larger images are reduced, antialiased, until their longest side has this length. None: no limit.
    min_side : int, optional
        Smaller images are enlarged until their shortest side has this length (or the longest has `max_side`).
    border : int, default 0
        Pixels by which the image is continued on every side (with the value at its edge), after it was brought to
        size: patches then also see what lies near the edge at their centre. Digits that fill their frame want it.
    contrast : "none", "local" or "log", default "none"
        How the picture's contrast is evened out before it is described: not at all; minus the mean of the
        neighbourhood, divided by its deviation, for faces under any light; or by the logarithm. See `images.contrast`.
    centre_ink : bool, default False
        Whether what is drawn is moved to the centre and scaled to a standard size first, for letters and signs on an
        even background. See `images.ink`.
    n_jobs : int, optional
        Threads, one image each; None means every core. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from ddlcn import DenseSIFT
    >>> images = np.random.default_rng(0).random((2, 28, 28))
    >>> DenseSIFT().transform(images)
    [Descriptors(9 of 128 dimensions, image 28 x 28), Descriptors(9 of 128 dimensions, image 28 x 28)]
    """

    def __init__(
        self,
        patch_size: int | tuple[int, ...] = 16,
        step: int = 6,
        max_side: int | None = 300,
        min_side: int | None = None,
        border: int = 0,
        contrast: str = "none",
        centre_ink: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.patch_size = patch_size
        self.step = step
        self.max_side = max_side
        self.min_side = min_side
        self.border = border
        self.contrast = contrast
        self.centre_ink = centre_ink
        self.n_jobs = n_jobs

    def extract(self, image: AnyImage, name: str = "image") -> Extracted:
        """All of the work, as `descriptors.store` keeps it: the descriptors, and the image in bytes."""
        patch_sizes, step, *_, contrast, _ = self._check_parameters()
        grey = self.read(image, name)
        described = describe_grey(even_contrast(grey, contrast), patch_sizes, step)
        return Extracted(described, np.round(255.0 * grey).astype(np.uint8))

    def cache_key(self) -> Hashable:
        """What the descriptors of an image depend on."""
        return ("DenseSIFT", *self._check_parameters())

    def read(self, image: AnyImage, name: str = "image") -> GreyImage:
        """One image as it is seen: grey values (H, W) in [0, 1], brought to size, with its border."""
        patch_sizes, _, max_side, min_side, border, _, centred = self._check_parameters()
        grey = read_image(image, max_side=max_side, min_side=min_side, patch_size=max(patch_sizes), name=name)
        grey = centre_ink(grey) if centred else grey
        return np.pad(grey, border, mode="edge") if border > 0 else grey

    def _check_parameters(self) -> tuple[tuple[int, ...], int, int | None, int | None, int, str, bool]:
        """The parameters, checked: patch sizes, step, max_side, min_side, border, contrast, centre_ink."""
        grid = check_grid(self.patch_size, self.step, self.max_side, self.min_side)
        border, contrast = check_count("border", self.border, 0), check_choice("contrast", self.contrast, CONTRASTS)
        return *grid, border, contrast, bool(self.centre_ink)


def describe_grey(grey: GreyImage, patch_sizes: tuple[int, ...], step: int) -> Descriptors:
    """Dense SIFT of one grey image that is at least as large as its patches.

    Parameters
    ----------
    grey : ndarray of shape (H, W), float32
    patch_sizes : tuple of int
        One grid each, stacked in this order.
    step : int

    Returns
    -------
    descriptors : Descriptors
    """
    from ddlcn.engines.cpu import sift  # here, since numba takes a second to import

    height, width = grey.shape
    responses = sift.respond(np.ascontiguousarray(grey, np.float32), *sift.gradient_filters())  # (H, W, 8)
    grids, xy, sizes = place_patches((height, width), patch_sizes, step)
    values = np.empty((len(xy), sift.DESCRIPTOR_SIZE), np.float32)
    start = 0
    for size, (tops, lefts) in zip(patch_sizes, grids, strict=True):
        stop = start + len(tops) * len(lefts)
        sift.pool_patches(
            responses,
            sift.cell_weights(size),
            step,
            tops.start,
            lefts.start,
            len(tops),
            len(lefts),
            values[start:stop],
        )
        start = stop
    return Descriptors(values, xy, (height, width), sizes)

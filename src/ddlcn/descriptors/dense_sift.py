"""Dense SIFT: images in, `Descriptors` out (docs/method.md, "Descriptors").

Thin over two functions: `read_image` brings a picture to grey and to size, the kernels of `engines.cpu.sift`
describe it. Images are independent, so threads take one image each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.store import Extracted
from ddlcn.images import AnyImage, GreyImage, NamedImage, name_images, read_image
from ddlcn.images.contrast import CONTRASTS, even_contrast
from ddlcn.images.ink import centre_ink
from ddlcn.utils.estimators import TakesImages
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count

if TYPE_CHECKING:
    from sklearn.utils import Tags

# 4 x 4 cells need at least one pixel each.
SMALLEST_PATCH = 4


class DenseSIFT(TransformerMixin, TakesImages):  # type: ignore[misc]
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

    def fit(self, images: Any = None, y: Any = None) -> DenseSIFT:
        """Check the parameters; there is nothing to learn, and `images` and `y` are not looked at.

        Returns
        -------
        self : DenseSIFT
        """
        self._check_parameters()
        return self

    def transform(self, images: Iterable[AnyImage] | NDArray[Any]) -> list[Descriptors]:
        """Describe images.

        Parameters
        ----------
        images : iterable of images, or array of shape (n, H, W) or (n, H, W, 3)
            Paths, arrays (H, W) or (H, W, 3), PIL images; sizes may differ. See `read_image`.

        Returns
        -------
        descriptors : list of Descriptors
            One entry per image: `values` (n, 128), `xy` (n, 2), `image_shape` (H, W).
        """
        return list(self.iter_transform(images))

    def iter_transform(
        self, images: Iterable[AnyImage] | NDArray[Any], n_jobs: int | None = None
    ) -> Iterator[Descriptors]:
        """Describe images one after the other, without holding them all.

        Parameters
        ----------
        images : iterable of images, or array of shape (n, H, W) or (n, H, W, 3)
            A generator is read only a few images ahead.
        n_jobs : int, optional
            Threads; None means the `n_jobs` of the estimator.

        Returns
        -------
        descriptors : iterator of Descriptors
            In the order of `images`.
        """
        self._check_parameters()

        def describe(item: NamedImage) -> Descriptors:
            return self.describe(item.image, name=item.name)

        return map_threads(describe, name_images(images), self.n_jobs if n_jobs is None else n_jobs)

    def describe(self, image: AnyImage, name: str = "image") -> Descriptors:
        """Describe one image in the calling thread.

        Parameters
        ----------
        image : path, array of shape (H, W) or (H, W, 3), or PIL image
        name : str
            What to call the image in messages, if it is not a file.

        Returns
        -------
        descriptors : Descriptors
        """
        return self.finish(self.extract(image, name))

    def extract(self, image: AnyImage, name: str = "image") -> Extracted:
        """All of the work, as `descriptors.store` keeps it: the descriptors, and the image in bytes."""
        patch_sizes, step, *_, contrast, _ = self._check_parameters()
        grey = self.read(image, name)
        described = describe_grey(even_contrast(grey, contrast), patch_sizes, step)
        return Extracted(described, np.round(255.0 * grey).astype(np.uint8))

    def finish(self, extracted: Extracted) -> Descriptors:
        """The descriptors of what `extract` took from an image: nothing is left to do."""
        descriptors: Descriptors = extracted.content
        return descriptors

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
        sizes = self.patch_size if isinstance(self.patch_size, tuple | list) else (self.patch_size,)
        if not sizes:
            raise ValueError("patch_size is empty: pass a number such as 16, or a tuple such as (12, 16, 24)")
        sizes = tuple(check_count("patch_size", size, SMALLEST_PATCH) for size in sizes)
        step = check_count("step", self.step)
        max_side = None if self.max_side is None else check_count("max_side", self.max_side)
        min_side = None if self.min_side is None else check_count("min_side", self.min_side)
        if max_side is not None and max_side < max(sizes):
            raise ValueError(
                f"max_side={max_side} is smaller than patch_size={max(sizes)}: raise max_side or lower patch_size"
            )
        if max_side is not None and min_side is not None and min_side > max_side:
            raise ValueError(f"min_side={min_side} is larger than max_side={max_side}: lower min_side")
        border, contrast = check_count("border", self.border, 0), check_choice("contrast", self.contrast, CONTRASTS)
        return sizes, step, max_side, min_side, border, contrast, bool(self.centre_ink)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


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
    grids = [(place_grid(height, size, step), place_grid(width, size, step)) for size in patch_sizes]
    n = sum(len(tops) * len(lefts) for tops, lefts in grids)
    values = np.empty((n, sift.DESCRIPTOR_SIZE), np.float32)
    xy = np.empty((n, 2), np.float32)
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
        xy[start:stop, 0] = np.tile(np.array(lefts) + (size - 1) / 2, len(tops))
        xy[start:stop, 1] = np.repeat(np.array(tops) + (size - 1) / 2, len(lefts))
        start = stop
    sizes = np.repeat(np.array(patch_sizes, np.float32), [len(tops) * len(lefts) for tops, lefts in grids])
    return Descriptors(values, xy, (height, width), sizes)


def place_grid(side: int, patch_size: int, step: int) -> range:
    """First pixels of the patches along one side: every `step`, what is left over shared by both ends."""
    offset = ((side - patch_size) % step) // 2
    return range(offset, side - patch_size + 1, step)

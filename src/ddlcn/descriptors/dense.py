"""What descriptors on a regular grid of patches have in common: images in, one `Descriptors` each out.

Images are independent, so threads take one image each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.store import Extracted
from ddlcn.images import AnyImage, NamedImage, name_images
from ddlcn.utils.estimators import TakesImages
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count

if TYPE_CHECKING:
    from sklearn.utils import Tags

# 4 x 4 cells need at least one pixel each.
SMALLEST_PATCH = 4


class DenseDescriptors(TransformerMixin, TakesImages):  # type: ignore[misc]
    """Base of descriptors that learn nothing; a class adds its parameters, `extract` and `cache_key`."""

    n_jobs: int | None

    def fit(self, images: Any = None, y: Any = None) -> Self:
        """Check the parameters; there is nothing to learn, and `images` and `y` are not looked at.

        Returns
        -------
        self
        """
        self.cache_key()
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
            One entry per image: `values` (n, m), `xy` (n, 2), `image_shape` (H, W).
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
        self.cache_key()

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
        raise NotImplementedError

    def finish(self, extracted: Extracted) -> Descriptors:
        """The descriptors of what `extract` took from an image: nothing is left to do."""
        descriptors: Descriptors = extracted.content
        return descriptors

    def cache_key(self) -> Hashable:
        """What the descriptors of an image depend on; raises ValueError if a parameter is wrong."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def check_grid(
    patch_size: Any, step: Any, max_side: Any, min_side: Any
) -> tuple[tuple[int, ...], int, int | None, int | None]:
    """The parameters of a grid, checked: patch sizes, step, max_side, min_side."""
    sizes = patch_size if isinstance(patch_size, tuple | list) else (patch_size,)
    if not sizes:
        raise ValueError("patch_size is empty: pass a number such as 16, or a tuple such as (12, 16, 24)")
    sizes = tuple(check_count("patch_size", size, SMALLEST_PATCH) for size in sizes)
    step = check_count("step", step)
    max_side = None if max_side is None else check_count("max_side", max_side)
    min_side = None if min_side is None else check_count("min_side", min_side)
    if max_side is not None and max_side < max(sizes):
        raise ValueError(
            f"max_side={max_side} is smaller than patch_size={max(sizes)}: raise max_side or lower patch_size"
        )
    if max_side is not None and min_side is not None and min_side > max_side:
        raise ValueError(f"min_side={min_side} is larger than max_side={max_side}: lower min_side")
    return sizes, step, max_side, min_side


def place_grid(side: int, patch_size: int, step: int) -> range:
    """First pixels of the patches along one side: every `step`, what is left over shared by both ends."""
    offset = ((side - patch_size) % step) // 2
    return range(offset, side - patch_size + 1, step)


def place_patches(
    shape: tuple[int, int], patch_sizes: Sequence[int], step: int
) -> tuple[list[tuple[range, range]], NDArray[np.float32], NDArray[np.float32]]:
    """Where the patches of an image (H, W) lie, one grid after the other, row by row.

    Returns
    -------
    grids : list of (first rows, first columns), one per patch size
    xy : ndarray (n, 2), float32
        Centres.
    sizes : ndarray (n,), float32
    """
    grids = [tuple(place_grid(side, size, step) for side in shape) for size in patch_sizes]
    xy, sizes = [], []
    for size, (tops, lefts) in zip(patch_sizes, grids, strict=True):
        y, x = np.meshgrid(tops, lefts, indexing="ij")
        xy.append(np.stack([x.ravel(), y.ravel()], axis=1) + (size - 1) / 2)
        sizes.append(np.full(x.size, size, np.float32))
    return grids, np.concatenate(xy).astype(np.float32), np.concatenate(sizes)  # type: ignore[return-value]

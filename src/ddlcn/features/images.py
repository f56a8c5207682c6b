"""Pictures of every kind, to grey.

In: a path, an array or a PIL image, of any size. Out: a float32 array (H, W) of grey values in [0, 1], of the
size that the descriptors of DESIGN section 2 are computed on (longest side at most `max_side`).

Grey only: SIFT has no colour. Transparent pixels are laid on white, as on a page.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn._threads import map_threads
from ddlcn._validation import check_count
from ddlcn.features.decoding import AnyImage, ImageReadError, check_pixels, decode, find_white

__all__ = ["AnyImage", "GreyImage", "ImageReadError", "fit_size", "name_images", "read_image", "read_images"]

GreyImage: TypeAlias = NDArray[np.float32]

# ITU-R BT.601 luma, as in PIL's convert("L") and MATLAB's rgb2gray.
LUMA = (0.299, 0.587, 0.114)


def read_image(
    image: AnyImage,
    *,
    max_side: int | None = None,
    min_side: int | None = None,
    patch_size: int = 1,
    name: str = "image",
) -> GreyImage:
    """Read one picture as grey values.

    Parameters
    ----------
    image : path, object with `read_bytes()`, array or PIL image
        A file that PIL can read (EXIF orientation is applied), or an object that returns the bytes of one, such
        as a member of an archive (its `name` is used in messages, if it has one); or an array of shape (H, W),
        (H, W, 1), (H, W, 3) or (H, W, 4), of dtype bool, uint8, uint16 or float in [0, 1]. A fourth channel is
        opacity: the picture is laid on white.
    max_side : int, optional
        The longest side is reduced to this, antialiased.
    min_side : int, optional
        The shortest side is enlarged to this, but never so far that the longest exceeds `max_side`.
    patch_size : int, default 1
        No side leaves smaller than this. A small image is enlarged as by `min_side`; where `max_side` forbids
        that (a long thin strip) the short side alone is stretched.
    name : str
        What to call an image that has no file name, in messages.

    Returns
    -------
    grey : ndarray of shape (H, W), float32
        Values in [0, 1].

    Raises
    ------
    ImageReadError
        If a file cannot be read.
    ValueError
        If an array is not an image.
    """
    max_side = None if max_side is None else check_count("max_side", max_side)
    min_side = 1 if min_side is None else check_count("min_side", min_side)
    patch_size = check_count("patch_size", patch_size)

    def fit(width: int, height: int) -> tuple[int, int]:
        return fit_size(width, height, max_side, min_side, patch_size)

    grey: GreyImage
    grey, (width, height) = decode(image, fit, name, _to_grey)
    if grey.shape != (height, width):
        # PIL's bicubic filter widens with the reduction, so that it antialiases. It overshoots at edges.
        resized = Image.fromarray(grey).resize((width, height), Image.Resampling.BICUBIC)
        grey = np.clip(np.asarray(resized), 0.0, 1.0)
    return grey


def read_images(
    images: Iterable[AnyImage] | NDArray[Any],
    *,
    max_side: int | None = None,
    min_side: int | None = None,
    n_jobs: int | None = None,
) -> Iterator[GreyImage]:
    """Read pictures lazily, in order, as `read_image` does, by `n_jobs` threads.

    Parameters
    ----------
    images : iterable of images, or array of shape (n, H, W) or (n, H, W, 3)
    max_side, min_side : int, optional
        See `read_image`.
    n_jobs : int, optional
        Threads; None means every core.

    Yields
    ------
    grey : ndarray of shape (H, W), float32
    """

    def read(named: tuple[str, AnyImage]) -> GreyImage:
        return read_image(named[1], max_side=max_side, min_side=min_side, name=named[0])

    return map_threads(read, name_images(images), n_jobs)


def name_images(images: Iterable[AnyImage] | NDArray[Any]) -> Iterator[tuple[str, AnyImage]]:
    """Go through the `images` argument of any function: pairs of a name for messages, and one image.

    Parameters
    ----------
    images : iterable of images, or array of shape (n, H, W) or (n, H, W, 1 | 3 | 4)
        Generators stay lazy.

    Returns
    -------
    named : iterator of (str, image)
        Not read yet. Raises ValueError at its end if there was no image at all.
    """
    if isinstance(images, str | bytes | os.PathLike | Image.Image):
        raise ValueError(f"images must be a list of images; got a single {type(images).__name__}: pass [image]")
    if isinstance(images, np.ndarray):
        is_list = images.ndim == 1 and images.dtype.kind in "OU"
        # A stack of grey pictures 1, 3 or 4 pixels wide is far less likely than one colour picture.
        is_stack = images.ndim == 4 or (images.ndim == 3 and images.shape[2] not in (1, 3, 4))
        if not is_list and not is_stack:
            raise ValueError(
                f"images must be a list of images or an array (n, H, W) or (n, H, W, 3); got an array of "
                f"shape {images.shape} and dtype {images.dtype}: pass a single image as [image]"
            )
    elif not hasattr(images, "__iter__"):
        kind = type(images).__name__
        raise ValueError(f"images must be a list of paths, arrays or PIL images; got {kind}: pass [image, ...]")
    return _number(images)


def fit_size(width: int, height: int, max_side: int | None, min_side: int, patch_size: int) -> tuple[int, int]:
    """The size (width, height) that a picture is resized to: see `read_image` for the rule."""
    short, long = max(1, min(width, height)), max(1, width, height)
    scale = max(1.0, max(min_side, patch_size) / short)
    if max_side is not None:
        scale = min(scale, max_side / long)
    return max(patch_size, round(width * scale)), max(patch_size, round(height * scale))


def _number(images: Iterable[AnyImage]) -> Iterator[tuple[str, AnyImage]]:
    index = -1
    for index, image in enumerate(images):
        yield f"images[{index}]", image
    if index < 0:
        raise ValueError("images is empty: pass at least one image")


def _to_grey(array: Any, name: str) -> GreyImage:
    """Grey values (H, W) of an array (H, W[, 1 | 3 | 4])."""
    array = check_pixels(array, name)
    white = find_white(array, name)
    if array.ndim == 2 or array.shape[2] == 1:
        grey = array.reshape(array.shape[:2]) / np.float32(white)
    else:
        grey = np.zeros(array.shape[:2], np.float32)
        for channel, weight in enumerate(LUMA):  # one at a time: no float copy of all colours of a large picture
            grey += array[..., channel] * np.float32(weight / white)
    if array.ndim == 3 and array.shape[2] == 4:
        alpha = array[..., 3] / np.float32(white)
        grey = grey * alpha + (1 - alpha)
    clipped: GreyImage = np.clip(grey, 0.0, 1.0).astype(np.float32, copy=False)
    return clipped

"""Pictures to grey arrays.

In: a path, an array or a PIL image, of any size. Out: a float32 array (H, W) of grey values in [0, 1], of the
size that the descriptors of docs/method.md are computed on (longest side at most `max_side`).

Grey only: SIFT has no colour. Transparent pixels are composited on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.images.decoding import AnyImage, check_pixels, find_white
from ddlcn.images.naming import NamedImage, name_images
from ddlcn.images.sizing import read_sized
from ddlcn.utils.threads import map_threads

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
        opacity: the picture is composited on white.
    max_side : int, optional
        The longest side is reduced to this, antialiased.
    min_side : int, optional
        The shortest side is enlarged to this, but never so far that the longest exceeds `max_side`.
    patch_size : int, default 1
        No side of the result is smaller. A small image is enlarged as by `min_side`; if `max_side` forbids
        that (a long thin strip), only the short side is stretched.
    name : str
        Name in messages of an image without a file name.

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
    grey: GreyImage = read_sized(image, _to_grey, _resize, max_side, min_side, patch_size, name)
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

    def read(item: NamedImage) -> GreyImage:
        return read_image(item.image, max_side=max_side, min_side=min_side, name=item.name)

    return map_threads(read, name_images(images), n_jobs)


def _resize(grey: GreyImage, size: tuple[int, int]) -> GreyImage:
    # PIL's bicubic filter antialiases when reducing, and overshoots at edges.
    resized = Image.fromarray(grey).resize(size, Image.Resampling.BICUBIC)
    clipped: GreyImage = np.clip(np.asarray(resized), 0.0, 1.0)
    return clipped


def _to_grey(array: Any, name: str) -> GreyImage:
    """Grey values (H, W) of an array (H, W[, 1 | 3 | 4])."""
    array = check_pixels(array, name)
    white = find_white(array, name)
    if array.ndim == 2 or array.shape[2] == 1:
        grey = array.reshape(array.shape[:2]) / np.float32(white)
    else:
        grey = np.zeros(array.shape[:2], np.float32)
        for channel, weight in enumerate(LUMA):  # one at a time: avoids a float copy of all channels
            grey += array[..., channel] * np.float32(weight / white)
    if array.ndim == 3 and array.shape[2] == 4:
        alpha = array[..., 3] / np.float32(white)
        grey = grey * alpha + (1 - alpha)
    clipped: GreyImage = np.clip(grey, 0.0, 1.0).astype(np.float32, copy=False)
    return clipped

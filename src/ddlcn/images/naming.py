"""The `images` argument of every function: whatever a person passes in, as a sequence of named images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.images.decoding import AnyImage


class NamedImage(NamedTuple):
    """What an image is called in messages, and the image itself: a path, an array, a PIL image."""

    name: str
    image: Any


def name_images(images: Iterable[AnyImage | NamedImage] | NDArray[Any]) -> Iterator[NamedImage]:
    """Go through the `images` argument of any function.

    Parameters
    ----------
    images : iterable of images, or array of shape (n, H, W) or (n, H, W, 1 | 3 | 4)
        Generators stay lazy. Images that have a name already keep it.

    Returns
    -------
    named : iterator of NamedImage
        Not read yet. Raises ValueError at its end if there was no image at all.
    """
    if isinstance(images, str | bytes | os.PathLike | Image.Image | NamedImage):
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


def _number(images: Iterable[Any]) -> Iterator[NamedImage]:
    index = -1
    for index, image in enumerate(images):
        yield image if isinstance(image, NamedImage) else NamedImage(f"images[{index}]", image)
    if index < 0:
        raise ValueError("images is empty: pass at least one image")

"""Example pictures of classes, as thumbnails in the page; never of people.

Pictures are optional: a data set that is missing or unreadable has none, and the report is written without them.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from ddlcn.datasets.dataset import Dataset
from ddlcn.report.classes import ClassScore, Confusion

SIDE = 96
_PER_CLASS = 3
_CLASSES = 3


def find_pictures(confusion: Confusion) -> dict[int, list[str]]:
    """Data addresses of JPEG thumbnails of the 3 best and 3 worst classes, by class; empty if there are none.

    Only of classes that the data set permits (`Dataset.may_show`).
    """
    try:
        dataset = _load(confusion.dataset)
        if dataset.class_names != confusion.names:  # another edition of the data
            return {}
        return _make_thumbnails(dataset, [*confusion.best[:_CLASSES], *confusion.worst[:_CLASSES]])
    except Exception:  # Whatever is wrong with the data, the numbers are still shown.
        return {}


def _load(name: str) -> Dataset:
    from ddlcn.datasets.registry import load_dataset

    return load_dataset(name)


def _make_thumbnails(dataset: Dataset, scores: Sequence[ClassScore]) -> dict[int, list[str]]:
    shown = [score.index for score in scores if dataset.may_show(score.index)]
    members = {index: np.flatnonzero(dataset.labels == index)[:_PER_CLASS].tolist() for index in shown}
    return {index: [make_thumbnail(dataset.images[i]) for i in members[index]] for index in shown}


def make_thumbnail(image: Any) -> str:
    """A picture (path, object with `read_bytes`, or array) as the data address of a small JPEG."""
    from PIL import Image, ImageOps

    picture: Image.Image
    if hasattr(image, "read_bytes"):
        picture = Image.open(io.BytesIO(image.read_bytes()))
    elif isinstance(image, str):
        picture = Image.open(image)
    else:
        array = np.asarray(image)
        pixels = array if array.dtype == np.uint8 else np.clip(np.round(array * 255.0), 0, 255).astype(np.uint8)
        picture = Image.fromarray(pixels)
    small = ImageOps.exif_transpose(picture).convert("RGB")
    small.thumbnail((SIDE, SIDE))
    return to_data_address(small)


def to_data_address(picture: Any) -> str:
    """A PIL image as the data address of a JPEG, to be embedded in a page."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()

"""Example pictures of classes, as thumbnails inside the page; never of people.

Pictures are an extra: a data set that is not here, or cannot be read, has none, and the report is made all the same.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from ddlcn.report.classes import ClassScore, Confusion

SIDE = 96
_PER_CLASS = 3
_CLASSES = 3
# The face sets are refused by name too, and so are the classes of people inside sets of objects (Caltech has both).
_FACE_SETS = ("yale", "ar_", "ar-", "face")
_PEOPLE = ("face", "people", "person", "portrait")


def find_pictures(confusion: Confusion) -> dict[int, list[str]]:
    """Data addresses of JPEG thumbnails for the 3 best and 3 worst classes, by class; empty where there are none."""
    if is_of_people(confusion.dataset):
        return {}
    try:
        dataset = _load(confusion.dataset)
        # A set that does not say is treated as if it did.
        if getattr(dataset, "shows_people", True) or tuple(map(str, dataset.class_names)) != confusion.names:
            return {}
        return _cut(dataset, [*confusion.best[:_CLASSES], *confusion.worst[:_CLASSES]])
    except Exception:  # Whatever is wrong with the data, the numbers are still to be shown.
        return {}


def is_of_people(dataset: str) -> bool:
    """Whether a data set is one of faces, by its name."""
    name = dataset.lower()
    return name == "ar" or name.startswith(_FACE_SETS)


def _load(name: str) -> Any:
    from ddlcn import datasets

    return datasets.load_dataset(name)  # type: ignore[attr-defined, unused-ignore]


def _cut(dataset: Any, scores: Sequence[ClassScore]) -> dict[int, list[str]]:
    labels = np.asarray(dataset.labels)
    pictures = {}
    for score in scores:
        if any(word in score.name.lower() for word in _PEOPLE):
            continue
        own = score.index if labels.dtype.kind in "iu" else score.name
        chosen = np.flatnonzero(labels == own)[:_PER_CLASS]
        pictures[score.index] = [make_thumbnail(dataset.images[int(i)]) for i in chosen]
    return pictures


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
    """A PIL image as the data address of a JPEG, to stand inside a page."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()

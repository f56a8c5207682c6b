"""Extended Yale B, cropped: 38 people under about 64 lights each, 2,414 images of 192 x 168.

In: `CroppedYale.zip` or the folder `CroppedYale`. The distribution also contains 18 images that its authors marked
as corrupt, one picture per person under ambient light (most of another size) and files that are not images: all left
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from itertools import groupby
from math import cos, radians
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.datasets.archive import match_files
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset, check_counts, make_dataset
from ddlcn.datasets.root import find_source
from ddlcn.utils.validation import check_choice

# Person, azimuth and elevation of the light in degrees: yaleB01/yaleB01_P00A+000E+00.pgm
_IMAGE = re.compile(r"(?:^|/)(yaleB\d\d)/(\1_P00A([+-]\d{3})E([+-]\d{2})\.pgm)$")
N_WORST_LIT = 10
# What `leave_out` makes of the data set.
_PARTS = {"worst lit": "yaleb-excluded", "darkest": "yaleb-lit"}


def open_yaleb(root: Path | None = None, leave_out: str = "") -> Dataset:
    """Extended Yale B, read lazily.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `yaleb/`; None means `data_root()`.
    leave_out : "", "worst lit" or "darkest"
        Leave out 10 images of each person; 2,034 stay. Worst lit: the file name holds the light's azimuth A and
        elevation E; the angle between light and camera axis is arccos(cos A cos E); those with the largest angle.
        Darkest: those with the smallest mean grey value. Ties by file name (the earlier one is left out).

    Returns
    -------
    dataset : Dataset
        Classes "yaleB01" to "yaleB39" (there is no 14); image names such as "yaleB01/yaleB01_P00A+000E+00.pgm".
    """
    check_choice("leave_out", leave_out, ("", *_PARTS))
    record = CATALOGUE["yaleb"]
    source = find_source(record, root)
    found = [(match[1], f"{match[1]}/{match[2]}", image) for match, image in match_files(source, _IMAGE)]
    dataset = check_counts(make_dataset(record, found), record, source)
    if not leave_out:
        return dataset
    images = {image_name: image for _, image_name, image in found}

    def measure_brightness(image_name: str) -> float:
        with Image.open(BytesIO(images[image_name].read_bytes())) as picture:
            return float(np.asarray(picture).mean())

    names = sorted(images)
    kept = well_lit(names) if leave_out == "worst lit" else _keep_best(names, measure_brightness)
    record = CATALOGUE[_PARTS[leave_out]]
    return check_counts(make_dataset(record, [item for item in found if item[1] in kept]), record, source)


def well_lit(image_names: list[str]) -> set[str]:
    """The sorted `image_names` without the 10 worst-lit of each person."""
    # The cosine is rounded so that lights at the same angle tie, independent of the platform's last digit.
    return _keep_best(image_names, lambda name: round(_light_cosine(name), 9))


def _keep_best(image_names: list[str], measure: Callable[[str], float]) -> set[str]:
    """The sorted `image_names` without the 10 of each person for which `measure` is smallest."""
    kept: set[str] = set()
    for _, names in groupby(image_names, key=lambda name: name.split("/")[0]):
        kept.update(sorted(names, key=lambda name: (measure(name), name))[N_WORST_LIT:])
    return kept


def _light_cosine(image_name: str) -> float:
    """Cosine of the angle between light and camera axis: 1 from the front, negative from behind."""
    match = _IMAGE.search(f"/{image_name}")
    assert match is not None  # only such names were listed
    return cos(radians(int(match[3]))) * cos(radians(int(match[4])))


def load_yaleb() -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """All pixels: images (2414, 192, 168) uint8 and the person of each, "yaleB01" to "yaleB39" (there is no 14)."""
    dataset = open_yaleb()
    images = []
    for image in dataset.images:
        with Image.open(BytesIO(image.read_bytes())) as picture:
            images.append(np.asarray(picture))
    return np.stack(images), np.array(dataset.class_names)[dataset.labels]

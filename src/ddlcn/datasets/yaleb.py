"""Extended Yale B, cropped: 38 people under about 64 lights each, 2,414 images of 192 x 168.

In: `CroppedYale.zip` or the folder `CroppedYale`. The distribution also contains 18 images that its authors marked
as corrupt, one picture per person under ambient light (most of another size) and files that are not images: all left
out.
"""

from __future__ import annotations

import re
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

# Person, azimuth and elevation of the light in degrees: yaleB01/yaleB01_P00A+000E+00.pgm
_IMAGE = re.compile(r"(?:^|/)(yaleB\d\d)/(\1_P00A([+-]\d{3})E([+-]\d{2})\.pgm)$")
N_WORST_LIT = 10


def open_yaleb(root: Path | None = None, excluded: bool = False) -> Dataset:
    """Extended Yale B, read lazily.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `yaleb/`; None means `data_root()`.
    excluded : bool, default False
        Leave out the 10 worst-lit images of each person. The file name holds the light's azimuth A and elevation
        E; the angle between light and camera axis is arccos(cos A cos E); the 10 images of a person with the
        largest angle are left out, ties by file name (the earlier one is left out). 2,034 images stay.

    Returns
    -------
    dataset : Dataset
        Classes "yaleB01" to "yaleB39" (there is no 14); image names such as "yaleB01/yaleB01_P00A+000E+00.pgm".
    """
    record = CATALOGUE["yaleb"]
    source = find_source(record, root)
    found = [(match[1], f"{match[1]}/{match[2]}", image) for match, image in match_files(source, _IMAGE)]
    dataset = check_counts(make_dataset(record, found), record, source)
    if not excluded:
        return dataset
    kept = well_lit([item[1] for item in sorted(found)])
    record = CATALOGUE["yaleb-excluded"]
    return check_counts(make_dataset(record, [item for item in found if item[1] in kept]), record, source)


def well_lit(image_names: list[str]) -> set[str]:
    """The sorted `image_names` without the 10 worst-lit of each person."""
    kept: set[str] = set()
    for _, names in groupby(image_names, key=lambda name: name.split("/")[0]):
        # The cosine is rounded so that lights at the same angle tie, independent of the platform's last digit.
        worst_first = sorted(names, key=lambda name: (round(_light_cosine(name), 9), name))
        kept.update(worst_first[N_WORST_LIT:])
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

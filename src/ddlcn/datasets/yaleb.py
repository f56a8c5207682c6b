"""Extended Yale B, cropped: 38 people under about 64 lights each, 2,414 images of 192 x 168, from `CroppedYale.zip`.

The archive also holds 18 images that its makers marked as corrupt, one picture per person under ambient light (of
another size) and files that are no images: all left out.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.datasets.root import find_file


def load_yaleb() -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Images (2414, 192, 168) uint8 and the person of each, "yaleB01" to "yaleB39" (there is no 14)."""
    images, people = [], []
    with zipfile.ZipFile(find_file("yaleb", "CroppedYale.zip")) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".pgm") and "Ambient" not in name:
                with Image.open(io.BytesIO(archive.read(name))) as picture:
                    images.append(np.asarray(picture))
                people.append(name.rsplit("/", 1)[-1].split("_")[0])
    return np.stack(images), np.array(people)

"""What is not in the picture and still tells its class: size, brightness, blur, border, camera, day, ...

If one such property alone recognises most pictures, a model may learn it in place of what is shown, and fail on
pictures that were taken in another way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage, stats

from ddlcn.images import read_image
from ddlcn.images.formats import prepare_reader
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# EXIF tags: model of the camera; when the picture was taken, and the block that holds it.
CAMERA, TAKEN, EXIF_BLOCK = 0x0110, 0x9003, 0x8769
# Grey values are looked at in pictures of at most this side.
SIDE = 192
N_FOLDS = 3
# Fewer pictures say nothing. A shortcut recognises at least this share of what guessing the largest class leaves.
FEWEST, SHARE = 20, 0.5


@dataclass(frozen=True)
class Shortcut:
    """A property that tells the class by itself.

    Attributes
    ----------
    name : str
        Of the property.
    recognised, guessed : float
        Share of held-out pictures recognised by it alone; by naming the largest class.
    """

    name: str
    recognised: float
    guessed: float


def find_shortcuts(
    paths: Sequence[Path], labels: Array, groups: NDArray[np.intp], n_jobs: int | None = None
) -> list[Shortcut]:
    """Properties that recognise far more pictures than guessing does, the strongest first.

    Parameters
    ----------
    paths : sequence of n picture files; labels, groups : ndarrays (n,)
        Pictures of one group (near-duplicates) are never on both sides.
    """
    y = np.unique(labels, return_inverse=True)[1]
    if len(paths) < FEWEST or np.bincount(y).max() < N_FOLDS:
        return []
    described = list(map_threads(describe_file, paths, n_jobs))
    guessed = float(np.bincount(y).max() / len(y))
    found = []
    for name in described[0]:
        values = [each[name] for each in described]
        n_right = _count_recognised(values, y, groups)
        low = stats.binomtest(n_right, len(y)).proportion_ci(0.95, method="wilson").low
        if low >= guessed + SHARE * (1.0 - guessed):
            found.append(Shortcut(name, n_right / len(y), guessed))
    return sorted(found, key=lambda shortcut: -shortcut.recognised)


def describe_file(path: Path) -> dict[str, float | str]:
    """Properties of a picture file by name: numbers, and words."""
    prepare_reader(str(path))
    with Image.open(path) as picture:
        width, height = picture.size
        exif = picture.getexif()
        day = str(exif.get_ifd(EXIF_BLOCK).get(TAKEN, ""))[:10]
        camera = str(exif.get(CAMERA, ""))
        kind, mode = str(picture.format), str(picture.mode)
    grey = read_image(path, max_side=SIDE)
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return {
        "width in pixels": float(width),
        "height in pixels": float(height),
        "width against height": width / height,
        "bytes per pixel": path.stat().st_size / (width * height),
        "kind of file": kind,
        "kind of pixels": mode,
        "brightness": float(grey.mean()),
        "contrast": float(grey.std()),
        "sharpness": float(np.abs(ndimage.laplace(grey)).mean() / (grey.std() + 1e-6)),
        "brightness of the border": float(border.mean()),
        "evenness of the border": float(border.std()),
        "camera": camera,
        "day it was taken": day,
    }


def _count_recognised(values: Sequence[float | str], y: NDArray[np.intp], groups: NDArray[np.intp]) -> int:
    """How many held-out pictures a small tree recognises by one property; 0 if it is the same for all."""
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.tree import DecisionTreeClassifier

    distinct = sorted(set(values), key=str)
    if len(distinct) < 2:
        return 0
    if isinstance(values[0], str):
        column = np.array([[value == other for other in distinct] for value in values], float)
    else:
        column = np.array(values, float)[:, None]
    n_classes = int(y.max()) + 1
    tree = DecisionTreeClassifier(max_leaf_nodes=max(2, 2 * n_classes), min_samples_leaf=2, random_state=0)
    n_right = 0
    folds = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer pictures than folds
        splits = list(folds.split(column, y, groups))
    for train, test in splits:
        n_right += int((tree.fit(column[train], y[train]).predict(column[test]) == y[test]).sum())
    return n_right

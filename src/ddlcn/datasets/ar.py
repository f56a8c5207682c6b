"""AR faces: 100 people, 26 shots each (1-7 clean, 8-10 sunglasses, 11-13 scarf, 14-26 the same in session 2).

In: `ar_42x30_100x26.npz` (2,600 images of 42 x 30), or the original: files `M-001-01.bmp` ... `W-050-26.bmp`
of 165 x 120, in the folder `ar` or folders below it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ddlcn.datasets.archive import explain_damage, match_files
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset, check_counts, make_dataset
from ddlcn.datasets.root import find_source, missing

_BITMAP = re.compile(r"(?:^|/)(([MW]-\d{3})-\d{2})\.bmp$", re.IGNORECASE)


def open_ar(root: Path | None = None) -> Dataset:
    """AR faces: small arrays, or lazily read bitmaps, whichever is present.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `ar/`; None means `data_root()`.

    Returns
    -------
    dataset : Dataset
        Classes "p001" to "p100" (arrays) or "M-001" to "W-050" (bitmaps); image names are person-shot, "p001-01".
    """
    record = CATALOGUE["ar"]
    source = find_source(record, root)
    if source.suffix == ".npz":
        return check_counts(_open_arrays(source), record, source)
    found = [(match[2].upper(), match[1].upper(), image) for match, image in match_files(source, _BITMAP)]
    if not found:
        raise missing(record, source.parent)
    return check_counts(make_dataset(record, found), record, source)


def _open_arrays(path: Path) -> Dataset:
    record = CATALOGUE["ar"]
    with explain_damage(path), np.load(path) as arrays:
        if not {"images", "names"} <= set(arrays.files):
            raise ValueError(f"{path} holds {arrays.files} where images, labels and names are needed: get it again")
        images, names = arrays["images"], [str(name) for name in arrays["names"]]
    if images.ndim != 3 or images.dtype != np.uint8 or len(names) != len(images):
        raise ValueError(
            f"{path} holds images of shape {images.shape}, dtype {images.dtype}, and {len(names)} names where "
            f"(n, H, W), uint8 and n names are needed: get it again"
        )
    people = sorted({name.rsplit("-", 1)[0] for name in names})
    index = {person: i for i, person in enumerate(people)}
    return Dataset(
        name=record.name,
        title=record.title,
        images=images,
        labels=np.array([index[name.rsplit("-", 1)[0]] for name in names], np.intp),
        class_names=tuple(people),
        image_names=tuple(names),
        shows_people=record.shows_people,
    )

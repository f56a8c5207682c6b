"""Caltech 101 and Caltech 256: colour JPEGs of objects, one folder per class.

In: `101_ObjectCategories.tar.gz`, `caltech-101.zip` (which holds it) or the folder; `256_ObjectCategories.tar` or
the folder. Left out: the folders that are not an object class (`BACKGROUND_Google`, `257.clutter`) and stray files.
Papers that say 102 classes count `BACKGROUND_Google` as one: "caltech102".
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ddlcn.datasets.archive import Listing, Wanted, explain_damage, list_files, list_gzipped_tar, match_files
from ddlcn.datasets.catalogue import CATALOGUE, Record
from ddlcn.datasets.dataset import Dataset, check_counts, make_dataset
from ddlcn.datasets.root import find_source

_IMAGE_101 = re.compile(r"/((?!BACKGROUND_Google/)[^/]+)/(image_\d{4}\.jpg)$")
_IMAGE_102 = re.compile(r"/([^/]+)/(image_\d{4}\.jpg)$")
_IMAGE_256 = re.compile(r"/((?!257\.)\d{3}\.[^/]+)/(\d{3}_\d{4}\.jpg)$")
_INNER_101 = "101_ObjectCategories.tar.gz"


def open_caltech101(root: Path | None = None, background: bool = False) -> Dataset:
    """Caltech 101 without its background folder: 101 classes, 8,677 images.

    From the folder, images are paths; from an archive, their JPEG bytes (130 MB) are kept in memory.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `caltech101/`; None means `data_root()`.
    background : bool, default False
        With the background folder as one more class: 102 classes, 9,144 images.

    Returns
    -------
    dataset : Dataset
        Image names such as "accordion/image_0001.jpg".
    """
    record = CATALOGUE["caltech102" if background else "caltech101"]
    source = find_source(record, root)
    return _open(record, source, _IMAGE_102 if background else _IMAGE_101)


def open_caltech256(root: Path | None = None) -> Dataset:
    """Caltech 256 without its clutter folder: 256 classes, 29,780 images, read lazily.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `caltech256/`; None means `data_root()`.

    Returns
    -------
    dataset : Dataset
        Classes "001.ak47" and so on; image names such as "001.ak47/001_0001.jpg".
    """
    record = CATALOGUE["caltech256"]
    source = find_source(record, root)
    return _open(record, source, _IMAGE_256)


def _open(record: Record, source: Path, pattern: re.Pattern[str]) -> Dataset:
    lister = _list_inner if source.suffix == ".zip" else list_files
    found = [(match[1], f"{match[1]}/{match[2]}", image) for match, image in match_files(source, pattern, lister)]
    return check_counts(make_dataset(record, found), record, source)


def _list_inner(source: Path, wanted: Wanted) -> Listing:
    """List the images of the .tar.gz inside CaltechDATA's .zip."""
    with explain_damage(source), zipfile.ZipFile(source) as outer:
        inner = [name for name in outer.namelist() if name.rsplit("/", 1)[-1] == _INNER_101]
        if not inner:
            raise ValueError(f"{source} holds no {_INNER_101}: get it again")
        with outer.open(inner[0]) as stream:
            return list_gzipped_tar(stream, f"{source}/{inner[0]}", wanted)

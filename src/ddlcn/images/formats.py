"""Which files are pictures, and what reads them: PIL, pillow-heif where it is installed, or nothing here.

A picture that nothing reads is still listed, so that it is reported with a reason and does not vanish.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from importlib.util import find_spec

from PIL import Image

# What phones write, and what cameras write.
HEIC = (".heic", ".heif", ".hif")
RAW = (".arw", ".cr2", ".cr3", ".dng", ".nef", ".nrw", ".orf", ".pef", ".raf", ".rw2", ".srw")


def find_suffix(name: str) -> str:
    """The end of a file's name in lower case, such as ".jpg"."""
    return os.path.splitext(name)[1].lower()


@cache
def list_suffixes() -> frozenset[str]:
    """Suffixes, in lower case, of pictures: of all formats that PIL can read (some it can only write), and above."""
    readable = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    return frozenset(readable) | {*HEIC, *RAW}


def prepare_reader(name: str) -> None:
    """Have PIL read a file of that name with pillow-heif, if it is what phones write and that is installed."""
    if find_suffix(name) in HEIC and has_heif():
        importlib.import_module("pillow_heif").register_heif_opener()


def explain_format(name: str) -> str:
    """Why a file of that name is not read although it may be a picture; "" if its kind should be read."""
    if find_suffix(name) in HEIC and not has_heif():
        return "HEIC pictures need pillow-heif: pip install 'ddlcn[heic]', or save them as JPEG"
    if find_suffix(name) in RAW:
        return "it is a camera's raw file: save it as JPEG or PNG"
    return ""


def has_heif() -> bool:
    """Whether pillow-heif is installed."""
    return find_spec("pillow_heif") is not None

"""Kinds of picture files: what phones write is read where pillow-heif is there."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.images import read_image
from ddlcn.images.formats import explain_format, list_suffixes


def test_what_phones_write_is_read(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    from PIL import Image

    shades = np.tile(np.linspace(0, 255, 64).astype(np.uint8), (48, 1))
    heif.from_pillow(Image.fromarray(np.dstack([shades] * 3))).save(tmp_path / "a.HEIC", quality=95)
    grey = read_image(tmp_path / "a.HEIC")
    assert grey.shape == (48, 64)
    assert np.abs(grey - shades / 255).max() < 0.05


def test_kinds_are_known_by_their_suffix():
    assert {".jpg", ".png", ".webp", ".heic", ".nef"} <= list_suffixes()
    assert ".txt" not in list_suffixes()
    assert explain_format("a.jpg") == ""
    assert "raw file" in explain_format("A.NEF")

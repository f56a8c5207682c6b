"""Uploads: accepted if they are pictures of sensible size, refused with a reason if not."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from ddlcn.web.uploads import Limits, RefusedError, open_upload


def encode(picture: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


def make_png_header(width: int, height: int) -> bytes:
    """A PNG whose header declares this size, with hardly any data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(100_000)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_pictures_are_opened(kind):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 30), dtype=np.uint8))
    assert open_upload(encode(picture, kind), Limits()).size == (30, 20)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b"<html><body>hello</body></html>", "not an image"),
        (b"%PDF-1.4", "not an image"),
        (encode(Image.new("P", (1, 1)), "GIF"), "too small"),
        (make_png_header(20_000, 10_000), "more than 50 million pixels"),  # 200 megapixels
        (make_png_header(60_000, 60_000), "more than 50 million pixels"),
        (make_png_header(500, 500), "damaged"),
        (encode(Image.new("L", (300, 300)), "JPEG")[:200], "damaged|not an image"),
    ],
)
def test_others_are_refused(content, complaint):
    with pytest.raises(RefusedError, match=complaint):
        open_upload(content, Limits())


def test_a_bomb_of_text_is_refused():
    """A PNG text chunk that unpacks to hundreds of megabytes."""
    bomb = zlib.compress(bytes(200_000_000))
    data = b"comment\0\0" + bomb
    chunk = struct.pack(">I", len(data)) + b"zTXt" + data + struct.pack(">I", zlib.crc32(b"zTXt" + data))
    png = encode(Image.new("L", (50, 50)))
    with pytest.raises(RefusedError, match="damaged|not an image"):
        open_upload(png[:33] + chunk + png[33:], Limits())


def test_limits_are_those_given():
    picture = encode(Image.new("L", (40, 40)))
    with pytest.raises(RefusedError, match="more than 0 million pixels"):
        open_upload(picture, Limits(max_pixels=1000))
    with pytest.raises(RefusedError, match="larger than 0 MB"):
        open_upload(picture, Limits(max_bytes=10))

"""Made-up data sets in the layouts of the real ones: a few tiny images, packed in every way."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from ddlcn.datasets.catalogue import CATALOGUE


def picture(seed: int, kind: str = "JPEG", size: tuple[int, int] = (20, 16)) -> bytes:
    """The bytes of an image file of noise, of (width, height) `size`."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0]), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    """A .tar or a .tar.gz, by the suffix, with entries for its folders, as `tar` makes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for folder in sorted({name.rsplit("/", 1)[0] for name in files}):
            entry = tarfile.TarInfo(folder)
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def write_idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(root: Path, n_train: int = 30, n_test: int = 10, suffix: str = ".gz") -> None:
    rng = np.random.default_rng(0)
    for part, n in (("train", n_train), ("t10k", n_test)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        write_idx(root / f"mnist/{part}-images-idx3-ubyte{suffix}", images)
        write_idx(root / f"mnist/{part}-labels-idx1-ubyte{suffix}", (np.arange(n) % 10).astype(np.uint8))


def yaleb_files(people: int = 2, lights: int = 12) -> dict[str, bytes]:
    """Lights at azimuths 0, 10, 20, ... and the junk of the real distribution."""
    files = {"CroppedYale/yaleB01/DEADJOE": b"a stray editor file"}
    for person in range(1, people + 1):
        folder = f"CroppedYale/yaleB{person:02d}/yaleB{person:02d}"
        files |= {f"{folder}_P00A+{10 * i:03d}E+00.pgm": picture(100 * person + i, "PPM") for i in range(lights)}
        files[f"{folder}_P00_Ambient.pgm"] = picture(0, "PPM", (64, 48))
        files[f"{folder}_P00A+000E+20.pgm.bad"] = b"corrupt"
        files[f"{folder}_P00.info"] = b"names of files"
        files[f"CroppedYale/yaleB{person:02d}/WS_FTP.LOG"] = b"log"
        files[f"__MACOSX/yaleB{person:02d}/._yaleB{person:02d}_P00A+000E+00.pgm"] = b"junk of a Mac"
    return files


def ar_files(people: int = 2, shots: int = 3) -> dict[str, bytes]:
    names = [f"{sex}-{i:03d}-{s:02d}" for sex in "MW" for i in range(1, people + 1) for s in range(1, shots + 1)]
    junk = {"readme.txt": b"by request", "Thumbs.db": b"junk", "test2/M-001-01.raw": b"raw"}
    return {f"test2/{name}.bmp": picture(i, "BMP", (12, 16)) for i, name in enumerate(names)} | junk


def caltech101_files(images: int = 3) -> dict[str, bytes]:
    classes = ("BACKGROUND_Google", "Faces", "accordion", "ant")
    names = [f"101_ObjectCategories/{c}/image_{i:04d}.jpg" for c in classes for i in range(1, images + 1)]
    junk = {"101_ObjectCategories/BACKGROUND_Google/tmp": b"stray", "101_ObjectCategories/ant/._image_0001.jpg": b"Mac"}
    return {name: picture(i, size=(20 + i, 16)) for i, name in enumerate(names)} | junk


def caltech256_files(images: int = 3) -> dict[str, bytes]:
    # What is left out comes first, so that an archive cut short always lacks something.
    classes = ("257.clutter", "001.ak47", "056.dog", "198.spider")
    names = [f"256_ObjectCategories/{c}/{c[:3]}_{i:04d}.jpg" for c in classes for i in range(1, images + 1)]
    junk = {
        "256_ObjectCategories/198.spider/RENAME2": b"a script",
        "256_ObjectCategories/056.dog/greg/vision309/056_0001.jpg": b"another's folder",
        "256_ObjectCategories/056.dog/.DS_Store": b"junk of a Mac",
    }
    return junk | {name: picture(i) for i, name in enumerate(names)}


def expect(monkeypatch, name: str, n_classes: int, n_images: int, **more) -> None:
    """Let a made-up data set count as complete: its record expects these numbers, and no known content."""
    record = replace(CATALOGUE[name], **({"n_classes": n_classes, "n_images": n_images, "content": {}} | more))
    monkeypatch.setitem(CATALOGUE, name, record)

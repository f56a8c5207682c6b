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
from PIL import Image, ImageDraw

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


def drawing(seed: int, drawer: int, side: int = 105) -> bytes:
    """A character, black on white, as Omniglot has it: five strokes that `seed` decides, a little off by the drawer."""
    points = np.random.default_rng(seed).uniform(0.15, 0.85, (6, 2))
    points += np.random.default_rng((seed, drawer)).normal(0, 0.015, points.shape)
    picture = Image.new("1", (side, side), 1)
    ImageDraw.Draw(picture).line([tuple(point) for point in (points * side).tolist()], fill=0, width=3)
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def omniglot_files(runs: int = 2, characters: int = 4, side: int = 105) -> dict[str, bytes]:
    """Runs as in `all_runs.zip`; test item i of run r shows character (i + r) mod n, and every run has its own."""
    files = {"__MACOSX/run01/training/._class01.png": b"junk of a Mac", "run01/.DS_Store": b"junk of a Mac"}
    for run in range(1, runs + 1):
        lines = []
        for i in range(characters):
            shown = (i + run) % characters
            item, right = f"run{run:02d}/test/item{i + 1:02d}.png", f"run{run:02d}/training/class{shown + 1:02d}.png"
            files[item], files[right] = (drawing(100 * run + shown, drawer, side) for drawer in (1, 2))
            lines.append(f"{item} {right}\n")
        files[f"run{run:02d}/class_labels.txt"] = "".join(lines).encode()
    return files


def background_files(part: int, characters: int = 3, drawers: int = 2) -> dict[str, bytes]:
    """Two alphabets as in `images_background_small<part>.zip`; Greek is in both parts."""
    files = {}
    for a, alphabet in enumerate(("Greek", ("", "Early_Aramaic", "Japanese_(katakana)")[part])):
        for c in range(1, characters + 1):
            number = 100 * (a and part) + c
            folder = f"images_background_small{part}/{alphabet}/character{c:02d}/{number:04d}"
            files |= {f"{folder}_{d:02d}.png": drawing(number, d, 28) for d in range(1, drawers + 1)}
    return files | {f"images_background_small{part}/.DS_Store": b"junk of a Mac"}


def write_omniglot(root: Path, runs: int = 2, characters: int = 4, side: int = 105) -> None:
    write_zip(root / "omniglot/all_runs.zip", omniglot_files(runs, characters, side))


def write_background(root: Path) -> None:
    for part in (1, 2):
        write_zip(root / f"omniglot/images_background_small{part}.zip", background_files(part))


def expect(monkeypatch, name: str, n_classes: int, n_images: int, **more) -> None:
    """Let a made-up data set count as complete: its record expects these numbers, and no known content."""
    record = replace(CATALOGUE[name], **({"n_classes": n_classes, "n_images": n_images, "content": {}} | more))
    monkeypatch.setitem(CATALOGUE, name, record)

"""Describe once: what was extracted from an image is kept for whoever asks next.

A training looks at each image many times: dictionaries, deeper layers, features, every fold, kept patches. Images from
`keep_descriptors` carry a store; `describe` asks it first. Kept in memory up to a limit, then in a temporary folder up
to another, then not at all; entries never leave, since a training goes round its images in the same order. Where
pictures are read in several ways (`keep_pixels`), what their files hold is kept too.

Descriptors take part with three methods: `extract(image, name)` does the expensive work that no fit changes,
`finish(extracted)` makes `Descriptors` of it, and `cache_key()` says what the extraction depends on. Any other object
with `transform(images)` is kept under its parameters.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors.container import Descriptors
from ddlcn.images.decoding import DecodedOnce, HoldsFile, Pixels
from ddlcn.images.naming import NamedImage, name_images
from ddlcn.utils.memory import count_memory
from ddlcn.utils.threads import map_threads

# In memory: an eighth of the machine's, but no less than this. On disk: a quarter of what is free, but no more than
# that.
LEAST_BYTES, MEMORY_SHARE = 500_000_000, 8
MOST_DISK_BYTES, DISK_SHARE = 20_000_000_000, 4


@dataclass(frozen=True, eq=False)
class Extracted:
    """What the expensive step takes from one image.

    Attributes
    ----------
    content : Descriptors, or what `finish` makes them from
    picture : ndarray (H, W), uint8, optional
        The image as it was described, for showing patches.
    """

    content: Any
    picture: NDArray[np.uint8] | None = None

    @property
    def nbytes(self) -> int:
        arrays = [value for value in vars(self.content).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays) + (0 if self.picture is None else self.picture.nbytes)


class DescriptorStore:
    """Extracted descriptors by key: in memory, then in a temporary folder, then not kept.

    Parameters
    ----------
    max_bytes, max_disk_bytes : int, optional
        None: by the machine's memory and free disk. The result of a training does not depend on them.
    """

    def __init__(self, max_bytes: int | None = None, max_disk_bytes: int | None = None) -> None:
        self._memory_left = max(LEAST_BYTES, count_memory() // MEMORY_SHARE) if max_bytes is None else max_bytes
        self._disk_left = max_disk_bytes
        self._kept: dict[Hashable, Extracted | Path] = {}
        self.keeps_pixels = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = Lock()
        self._making: dict[Hashable, Lock] = {}

    def get(self, key: Hashable) -> Extracted | None:
        """What was put under the key, or None."""
        found = self._kept.get(key)
        if not isinstance(found, Path):
            return found
        try:
            return pickle.loads(found.read_bytes())  # type: ignore[no-any-return]
        except (OSError, EOFError, pickle.UnpicklingError):  # somebody tidied the temporary folder
            return None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def put(self, key: Hashable, extracted: Extracted) -> bool:
        """Keep a value, if there is room; returns whether there was."""
        n_bytes = extracted.nbytes
        with self._lock:
            if key in self._kept:
                return True
            if n_bytes <= self._memory_left:
                self._memory_left -= n_bytes
                self._kept[key] = extracted
                return True
            path = self._reserve(n_bytes)
        if path is not None:
            with contextlib.suppress(OSError):  # a full disk: then it is made again
                path.write_bytes(pickle.dumps(extracted, protocol=5))
                self._kept[key] = path
                return True
        return False

    def recall_pixels(self, place: int, size: tuple[int, int], decode: Callable[[], Pixels]) -> Pixels:
        """What the file of the image at that place holds: kept from earlier, or decoded now."""
        if not self.keeps_pixels:
            return decode()
        pixels: Pixels = self.recall((place, "pixels", size), lambda: Extracted(decode())).content
        return pixels

    def recall(self, key: Hashable, make: Callable[[], Extracted]) -> Extracted:
        """What was put under the key, or else what `make` returns, kept if there is room.

        Of several threads that ask at once one makes it, and the others wait.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            found = self.get(key)
            if found is None:
                found = make()
                self.put(key, found)
        with self._lock:
            self._making.pop(key, None)
        return found

    def _reserve(self, n_bytes: int) -> Path | None:
        """A new file in the temporary folder; None where the disk has no room."""
        if self._folder is None:
            try:
                self._folder = tempfile.TemporaryDirectory(prefix="ddlcn-descriptors-")
            except OSError:
                self._disk_left = 0
                return None
        if self._disk_left is None:
            self._disk_left = min(MOST_DISK_BYTES, shutil.disk_usage(self._folder.name).free // DISK_SHARE)
        if n_bytes > self._disk_left:
            return None
        self._disk_left -= n_bytes
        return Path(self._folder.name) / f"{len(self._kept)}-{self._disk_left}.pickle"


class KeptImage(NamedImage):
    """A named image whose descriptors are kept in a store that it shares with the images beside it."""

    store: DescriptorStore
    place: int


def keep_descriptors(images: Iterable[Any] | NDArray[Any], store: DescriptorStore | None = None) -> list[NamedImage]:
    """The images of any `images` argument, each with a place in one store. Images that have a place keep it."""
    store = DescriptorStore() if store is None else store
    kept: list[NamedImage] = []
    for place, item in enumerate(name_images(images)):
        if not isinstance(item, KeptImage):
            image = item.image
            if isinstance(image, str | os.PathLike | HoldsFile):
                image = DecodedOnce(image, partial(store.recall_pixels, place))
            item = KeptImage(item.name, image)
            item.store, item.place = store, place
        kept.append(item)
    return kept


def keep_pixels(items: Iterable[NamedImage]) -> None:
    """From now on decode every picture of these stores once: for pictures that are read in several ways."""
    for item in items:
        if isinstance(item, KeptImage):
            item.store.keeps_pixels = True


def describe_ahead(descriptors: Any, items: Iterable[NamedImage], n_jobs: int | None) -> Generator[None]:
    """Extract what will be asked for, an image a step, by `n_jobs` threads, until the store is full."""

    def keep(item: NamedImage) -> bool:
        assert isinstance(item, KeptImage)  # from `keep_descriptors`
        key = (item.place, _name(descriptors))
        return key in item.store or item.store.put(key, _make(descriptors, item))

    with closing(map_threads(keep, items, n_jobs)) as kept:
        for is_kept in kept:
            if not is_kept:
                return
            yield


def describe(descriptors: Any, item: NamedImage) -> Descriptors:
    """The descriptors of one image, by any object with `transform(images) -> list of Descriptors`."""
    extracted = extract(descriptors, item)
    finished: Descriptors = descriptors.finish(extracted) if hasattr(descriptors, "finish") else extracted.content
    return finished


def extract(descriptors: Any, item: NamedImage) -> Extracted:
    """What the expensive step takes from one image: kept from earlier, or made now."""
    if not isinstance(item, KeptImage):
        return _make(descriptors, item)
    return item.store.recall((item.place, _name(descriptors)), lambda: _make(descriptors, item))


def _make(descriptors: Any, item: NamedImage) -> Extracted:
    if hasattr(descriptors, "extract"):
        made: Extracted = descriptors.extract(item.image, name=item.name)
        return made
    # Somebody's own descriptors know files, not what we make of them.
    image = item.image.file if isinstance(item.image, DecodedOnce) else item.image
    if hasattr(descriptors, "describe"):
        return Extracted(descriptors.describe(image, name=item.name))
    (content,) = descriptors.transform([image])
    return Extracted(content)


def _name(descriptors: Any) -> Hashable:
    """What an extraction depends on. An object that says nothing about itself is known by itself alone."""
    if hasattr(descriptors, "cache_key"):
        key: Hashable = descriptors.cache_key()
        return key
    if hasattr(descriptors, "get_params"):
        return type(descriptors), repr(sorted(descriptors.get_params().items()))
    return _Itself(descriptors)


@dataclass(frozen=True, eq=False)
class _Itself:
    """An object as a key: it stays alive, so that no other object can have its address."""

    itself: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.itself is self.itself

    def __hash__(self) -> int:
        return id(self.itself)

"""The files of a folder or of an archive, listed in one format, each read on demand.

In: a folder, a .zip, a .tar or a .tar.gz. Out: pairs of the name inside it and an object with `read_bytes()`:
a `Path` or an `ArchiveMember`. Nothing is unpacked to the disk.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import struct
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

Wanted = Callable[[str], bool]
Listing = list[tuple[str, "Path | ArchiveMember"]]
Matches = list[tuple[re.Match[str], "Path | ArchiveMember"]]

# Errors that Python's readers raise for truncated or corrupted archives.
# RuntimeError and KeyError: a zip whose corrupted list of files asks for passwords, other methods or other names.
DAMAGED = (
    EOFError,
    KeyError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
)
CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class ArchiveMember:
    """A file inside an archive. Can be pickled, and read by several threads at once.

    Parameters
    ----------
    name : str
        The archive's path and the name inside it, for messages.
    read_bytes : callable
        Takes nothing, returns the file's bytes.
    """

    name: str
    read_bytes: Callable[[], bytes]

    def __repr__(self) -> str:
        return f"ArchiveMember({self.name!r})"


def list_files(source: Path, wanted: Wanted) -> Listing:
    """List the files of a folder or archive whose names are `wanted`.

    Parameters
    ----------
    source : Path
        A folder (searched with all folders below it), or a .zip, .tar, .tar.gz or .tgz.
    wanted : callable
        Takes a name inside the source, with "/" between its parts; returns whether to list it.

    Returns
    -------
    files : list of (str, Path or ArchiveMember)
        In the order of the names.

    Raises
    ------
    ValueError
        If an archive is truncated or damaged; the message names it.
    """
    if source.is_dir():
        files = _list_folder(source, wanted)
    elif source.suffix == ".zip":
        with explain_damage(source):
            files = _list_zip(source, wanted)
    elif source.suffix == ".tar":
        with explain_damage(source):
            files = _list_tar(source, wanted)
    else:
        with explain_damage(source), source.open("rb") as stream:
            files = list_gzipped_tar(stream, str(source), wanted)
    return sorted(files, key=lambda item: item[0])


def match_files(
    source: Path, pattern: re.Pattern[str], lister: Callable[[Path, Wanted], Listing] = list_files
) -> Matches:
    """List the files of `source` whose "/" + name contains `pattern`, each with its match."""
    files = lister(source, lambda name: pattern.search(f"/{name}") is not None)
    matches = ((pattern.search(f"/{name}"), file) for name, file in files)
    return [(match, file) for match, file in matches if match is not None]


def list_gzipped_tar(stream: IO[bytes], source: str, wanted: Wanted) -> Listing:
    """List the files of a .tar.gz, keeping the bytes of the wanted ones in memory.

    A gzip stream has no random access, so each image would cost a pass over the whole archive. The bytes kept are
    the compressed image files, not their pixels.
    """
    files: Listing = []
    # "r|" never seeks: in a gzip stream that means unpacking from the start.
    with gzip.GzipFile(fileobj=stream) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            if member.isfile() and wanted(member.name):
                content = archive.extractfile(member)
                assert content is not None  # it is a plain file
                files.append((member.name, ArchiveMember(f"{source}/{member.name}", partial(bytes, content.read()))))
        while unpacked.read(CHUNK):  # to the very end, where gzip compares its checksum
            pass
    return files


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Turn the errors of readers for a damaged archive into one clear message."""
    try:
        yield
    except DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is truncated or damaged ({reason}): get it again") from error


def _list_folder(folder: Path, wanted: Wanted) -> Listing:
    files: Listing = []
    for parent, _, names in os.walk(folder):
        inside = Path(parent).relative_to(folder)
        for name in names:
            full = (inside / name).as_posix()
            if wanted(full):
                files.append((full, Path(parent, name)))
    return files


def _list_zip(path: Path, wanted: Wanted) -> Listing:
    source = ZipSource(path)
    return [
        (name, ArchiveMember(f"{path}/{name}", partial(source.read, name)))
        for name in source.names()
        if not name.endswith("/") and wanted(name)
    ]


def _list_tar(path: Path, wanted: Wanted) -> Listing:
    """List an uncompressed tar, with the offset of each file."""
    length = path.stat().st_size
    files: Listing = []
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            if member.offset_data + member.size > length:
                raise EOFError(f"it ends inside {member.name}")
            if member.isfile() and wanted(member.name):
                read = partial(_read_slice, path, member.offset_data, member.size)
                files.append((member.name, ArchiveMember(f"{path}/{member.name}", read)))
    return files


def _read_slice(path: Path, begin: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        content = file.read(size)
    if len(content) < size:
        raise EOFError("the archive has become shorter")
    return content


class ZipSource:
    """A zip file that several threads, and copies of it in other processes, may read.

    Opening costs a pass over the list of files, so it stays open. `ZipFile.open` and `close` count their users
    without a lock, so they are locked here. Reading between them is thread-safe, and takes most of the time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._archive: zipfile.ZipFile | None = None
        self._owner = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def names(self) -> list[str]:
        """Names of the files and folders inside."""
        with self._lock:
            return self._opened().namelist()

    def read(self, name: str) -> bytes:
        """The bytes of one file, checked against the CRC in the archive."""
        with self._lock:
            member = self._opened().open(name)
        try:
            return member.read()
        finally:
            with self._lock:
                member.close()

    def _opened(self) -> zipfile.ZipFile:
        # A forked process shares the file position with its parent, so it must reopen the file.
        if self._archive is None or self._owner != os.getpid():
            self._archive, self._owner = zipfile.ZipFile(self.path), os.getpid()
        return self._archive

"""Download a data set that has a public address: verified, and resumed after an interruption.

In: a name of the catalogue. Out: its files in its folder under the data root. An incomplete file is named
`<file>.part`; only a complete file with the right checksum gets its final name.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ddlcn.datasets.catalogue import Download, find_record
from ddlcn.datasets.registry import load_dataset
from ddlcn.datasets.root import data_root

# Called with the file's name, the bytes so far, and the total bytes (None if unknown).
Progress = Callable[[str, int, int | None], None]

CHUNK = 1 << 16
# Seconds to connect, and between two chunks: a longer pause is a timeout.
TIMEOUT = (20, 60)


class ResumingDownloader:
    """A downloader for pooch that continues a `.part` file by an HTTP Range request.

    Parameters
    ----------
    part : Path
        Where the bytes are kept until the file is complete.
    progress : callable, optional
        See `Progress`.
    """

    def __init__(self, part: Path, progress: Progress | None = None) -> None:
        self.part = part
        self.progress = progress

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Complete the part, then move it to `output_file`; pooch verifies and renames it."""
        import requests  # type: ignore[import-untyped,import-not-found,unused-ignore]

        try:
            with self._alone():
                self._complete(requests, url)
                os.replace(self.part, output_file)
        except requests.RequestException as error:
            kept = _count_bytes(self.part)
            raise OSError(
                f"the download of {url} stopped ({_reason(error)}); {kept:,} bytes are kept: run the same command "
                f"again, it continues there"
            ) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the part: a second download would write between the pieces of the first, or into its finished file.

        The lock is the system's own, so that a killed process leaves none. It is on the open file, not on its name:
        only who holds the file that has the name now may rename or remove it.
        """
        with self.part.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another may have finished, and taken the part away, between our opening it and locking it.
                free = _has_name(file, self.part)
            except BlockingIOError:
                free = False
            if not free:
                raise OSError(
                    f"{self.part} is being downloaded by another process: wait for it, then run the same command again"
                )
            try:
                yield
            finally:
                # Nothing came: leave nothing. After a download the name may be another's, who has just begun.
                if _has_name(file, self.part) and not _count_bytes(self.part):
                    self.part.unlink()

    def _complete(self, requests: Any, url: str) -> None:
        begin = _count_bytes(self.part)
        if begin:
            with self._request(requests, url, begin) as response:
                if _continues(response, begin):
                    self._write(response, begin)
                    return
                # Nothing to send: the part was complete when the last call was interrupted.
                if response.status_code == 416 and response.headers.get("Content-Range") == f"bytes */{begin}":
                    return
        # From the start: a first download, a server without Range, or a part longer than the file.
        with self._request(requests, url, 0) as response:
            response.raise_for_status()
            self._write(response, 0)

    def _request(self, requests: Any, url: str, begin: int) -> Any:
        # "identity": a server that compresses .gz files again would make byte counts useless.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begin}-"} if begin else {})
        return requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)

    def _write(self, response: Any, begin: int) -> None:
        length = response.headers.get("Content-Length")
        total = begin + int(length) if length else None
        done = begin
        with self.part.open("ab" if begin else "wb") as file:
            for piece in response.iter_content(CHUNK):
                file.write(piece)
                done += len(piece)
                if self.progress:
                    self.progress(self.part.stem, done, total)
            file.flush()
            os.fsync(file.fileno())  # before it gets its name: a dead machine must not leave a hole in it


def fetch(name: str, root: Path | None = None, progress: Progress | None = None) -> list[Path]:
    """Download the files of a data set.

    Parameters
    ----------
    name : str
        One that has a public address: "mnist", "caltech101", "caltech256", "omniglot", "omniglot-background".
    root : Path, optional
        None means `data_root()`.
    progress : callable, optional
        See `Progress`.

    Returns
    -------
    paths : list of Path
        The files; or the data set's folder, if it is complete already.

    Raises
    ------
    ValueError
        If the set has no public address (the message explains how to get it), pooch is not installed, or a file
        has the wrong checksum.
    OSError
        If the network or the disk fails. Received bytes are kept, and the next call continues there.
    """
    record = find_record(name)
    if not record.downloads:
        raise ValueError(f"{record.title} has no public address ({record.terms}). {record.how_to_get}")
    root = data_root() if root is None else root
    folder = root / record.folder
    if _is_complete(name, root):  # possibly packed differently from the download
        return [folder]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_fetch_file(download, folder, progress) for download in record.downloads]
    except OSError as error:
        if error.strerror is None:
            raise  # already a clear message
        raise OSError(
            f"cannot write to {error.filename or folder}: {error.strerror}; fix that and run the same command "
            f"again, it continues where it stopped"
        ) from error


def _is_complete(name: str, root: Path) -> bool:
    """Whether the data set opens: archives can be read and the counts are right."""
    try:
        load_dataset(name, root)
    except (ValueError, OSError):
        return False
    return True


def _fetch_file(download: Download, folder: Path, progress: Progress | None) -> Path:
    try:
        import pooch  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ValueError("downloads need pooch: pip install 'ddlcn[data]'") from error
    pooch.get_logger().setLevel(logging.WARNING)
    target = folder / download.file
    algorithm, _, checksum = download.checksum.partition(":")
    if target.exists():
        if pooch.file_hash(str(target), alg=algorithm) == checksum:
            return target
        raise ValueError(
            f"{target} exists but is not the file of {download.url} (its {algorithm} differs): delete it and "
            f"fetch again"
        )
    try:
        pooch.retrieve(
            download.url,
            known_hash=download.checksum,
            fname=download.file,
            path=folder,
            downloader=ResumingDownloader(folder / f"{download.file}.part", progress),
        )
    except ValueError as error:
        raise ValueError(
            f"{download.url} has the wrong {algorithm} and was deleted: fetch it again; if it happens twice, "
            f"the file there has changed"
        ) from error
    return target


def _has_name(file: BinaryIO, path: Path) -> bool:
    """Whether an open file is the one that `path` names now."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _count_bytes(path: Path) -> int:
    """The size of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _continues(response: Any, begin: int) -> bool:
    """Whether the response continues the file from byte `begin`."""
    content_range = str(response.headers.get("Content-Range", ""))
    return bool(response.status_code == 206 and content_range.startswith(f"bytes {begin}-"))


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server says {response.status_code} {response.reason}"
    return type(error).__name__

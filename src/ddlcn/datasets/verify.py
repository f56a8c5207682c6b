"""Verification of the data sets under the data root: file checksums, counts, content.

In: the root. Out: one `Finding` for each data set. An absent set is not a problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddlcn.datasets.catalogue import CATALOGUE, Record, find_record
from ddlcn.datasets.content import content_digests
from ddlcn.datasets.registry import load_dataset
from ddlcn.datasets.root import data_root

SUMS = "SHA256SUMS"
OTHER = "other files"


@dataclass(frozen=True)
class Finding:
    """The result for one data set.

    Parameters
    ----------
    name : str
        The data set, or "other files" for all others in SHA256SUMS.
    state : {"ok", "absent", "problem"}
    text : str
        What was checked, or the problems by file.
    """

    name: str
    state: str
    text: str = ""

    def __str__(self) -> str:
        if self.state == "absent":
            return f"{self.name} absent"
        return f"{self.name} {'ok' if self.state == 'ok' else 'PROBLEM'}: {self.text}"


def is_present(record: Record, root: Path | None = None) -> bool:
    """Whether any file of a data set is in its folder, complete or not."""
    folder = (data_root() if root is None else root) / record.folder
    if "." in record.files:  # loose files, in any arrangement
        return folder.is_dir() and any(path.is_file() for path in folder.rglob("*"))
    plain = [file.removesuffix(".gz") for file in record.files if file.endswith("-ubyte.gz")]
    return any((folder / file).exists() for file in (*record.files, *plain))


def verify(names: Sequence[str] = (), root: Path | None = None, n_jobs: int | None = None) -> Iterator[Finding]:
    """Check data sets, one after the other.

    1. Where the root or the data set's folder holds a `SHA256SUMS`, the bytes of every file it lists.
    2. The number of images and classes.
    3. The content, against the checksum in the catalogue, where one is known.

    Parameters
    ----------
    names : sequence of str
        Data sets; none means all, and all other files of SHA256SUMS. Data sets that share a folder are checked
        together.
    root : Path, optional
        None means `data_root()`.
    n_jobs : int, optional
        Threads; None means every core.

    Yields
    ------
    finding : Finding
        As soon as each is known; all of Caltech 101 takes some 20 seconds.

    Raises
    ------
    ValueError
        If a name is unknown, or SHA256SUMS cannot be parsed.
    """
    root = data_root() if root is None else root
    chosen = list(dict.fromkeys(find_record(name).folder for name in names or CATALOGUE))
    listed = read_sums(root / SUMS)
    for folder in chosen:
        files = {file: checksum for file, checksum in listed.items() if file.split("/")[0] == folder and "/" in file}
        files |= {f"{folder}/{file}": checksum for file, checksum in read_sums(root / folder / SUMS).items()}
        records = _list_records(folder)
        owners = {f"{folder}/{file}": record.name for record in records for file in record.files}
        for record in records:
            own = {file: checksum for file, checksum in files.items() if owners.get(file, folder) == record.name}
            yield _verify_one(record, root, own, n_jobs)
    if not names:
        others = {
            file: checksum for file, checksum in listed.items() if "/" not in file or file.split("/")[0] not in chosen
        }
        if others:
            problems = compare_files(root, others)
            text = "; ".join(problems) or f"{_count(len(others), 'file')} match {SUMS}"
            yield Finding(OTHER, "problem" if problems else "ok", text)


def read_sums(path: Path) -> dict[str, str]:
    """Read the files of a SHA256SUMS and their checksums; empty if it does not exist."""
    if not path.exists():
        return {}
    listed = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        checksum, _, file = line.partition(" ")
        file = file.strip().removeprefix("*").removeprefix("./")
        if len(checksum) != 64 or not file or set(checksum.lower()) - set("0123456789abcdef"):
            raise ValueError(f"{path}, line {number}, is not a SHA-256 and a file name: get the file again")
        listed[file] = checksum.lower()
    return listed


def compare_files(root: Path, listed: dict[str, str]) -> list[str]:
    """Compare files with SHA256SUMS: one message for each problem."""
    problems = []
    for file, checksum in listed.items():
        try:
            with (root / file).open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            problems.append(f"{file}: listed in {SUMS} but missing")
        except OSError as error:
            problems.append(f"{file}: cannot be read ({error.strerror})")
        else:
            if found != checksum:
                problems.append(f"{file}: bytes differ from {SUMS}")
    return problems


def _list_records(folder: str) -> list[Record]:
    """The data sets of a folder. A part of one is verified as the whole: "yaleb-excluded" as "yaleb"."""
    records = [record for record in CATALOGUE.values() if record.folder == folder]
    return list({record.files: record for record in reversed(records)}.values())[::-1]


def _verify_one(record: Record, root: Path, listed: dict[str, str], n_jobs: int | None) -> Finding:
    any_listed_present = any((root / file).exists() for file in listed)
    if not any_listed_present and not is_present(record, root):
        return Finding(record.name, "absent")
    problems, matching = [], []
    # If all listed archives are absent, they were unpacked and deleted: only the content is checked.
    if any_listed_present:
        problems = compare_files(root, listed)
        matching.append(f"{_count(len(listed), 'file')} in {SUMS}")
    counts = ""
    try:
        dataset = load_dataset(record.name, root)
        counts = f"{len(dataset):,} images, {len(dataset.class_names):,} classes"
        digests = content_digests(dataset, n_jobs)
        known = {part: checksum for part, checksum in record.content.items() if part in digests}
        for part, checksum in known.items():
            if digests[part] != checksum:
                problems.append(f"{record.folder}: the content of {part!r} is not that of the distribution")
        if known:
            matching.append("content")
    except (ValueError, OSError) as error:
        problems.append(" ".join(str(error).split()))
    if problems:
        return Finding(record.name, "problem", "; ".join(problems))
    checked = f"checksums match ({' and '.join(matching)})" if matching else "every image decodes, no checksum is known"
    return Finding(record.name, "ok", f"{counts}, {checked}")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"

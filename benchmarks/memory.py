"""Peak memory of the forward pass: 2,000 Caltech 101 images against 3,030 atoms.

Bars: beyond the output less than 1 GB, and no growth from 1,000 images to 2,000 (less than 50 MB apart).
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.data import point_to_shared_data
from ddlcn import DenseSIFT
from ddlcn.blocks import Encoding, SingleBranch, make_augmented_block
from ddlcn.datasets import data_root
from ddlcn.images import name_images

Array = NDArray[Any]
N_ATOMS = 3030  # 30 for each of 101 classes
COUNTS = (1000, 2000)
PYRAMID = (1, 2, 4)
BOUND = 1e9  # bytes
GROWTH_BOUND = 50e6  # bytes


@dataclass(frozen=True)
class MemoryUse:
    """Bytes: of the output, and the peak of the process beyond the output and what it held before."""

    output: int
    beyond_output: int


def measure_in_fresh_process(
    atoms: Array, images: Sequence[Any], n_neighbors: int | None, beta: float, n_jobs: int | None
) -> MemoryUse:
    """Memory that one `transform` takes, in a process of its own: nobody else's peak is in the way."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(measure, atoms, images, n_neighbors, beta, n_jobs).result()


def measure(atoms: Array, images: Sequence[Any], n_neighbors: int | None, beta: float, n_jobs: int | None) -> MemoryUse:
    """Memory that one `transform` takes, in this process."""
    block = make_augmented_block([atoms], [beta], [n_neighbors], PYRAMID)
    encoding = Encoding([SingleBranch(DenseSIFT(), block, PYRAMID)], [1.0])
    named = list(name_images(images))
    encoding.transform(named[:1], n_jobs)  # loads the compiled kernels, which is not what is asked for
    forget_peak()
    before = memory_now()
    features = encoding.transform(named, n_jobs)
    output = features.data.nbytes + features.indices.nbytes + features.indptr.nbytes
    return MemoryUse(output, memory_peak() - before - output)


def forget_peak() -> None:
    """Start a new peak here, where Linux allows it; elsewhere an older, higher one can only make the result larger."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory_now() -> int:
    """Bytes of memory that this process holds."""
    return _read_status("VmRSS")


def memory_peak() -> int:
    """Most bytes of memory that this process has held.

    On Linux not `ru_maxrss`: a process inherits that number from the one that started it.
    """
    return _read_status("VmHWM")


def _read_status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # no Linux: the peak so far is all that there is, in bytes on macOS
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def extract_caltech101(folder: Path, n: int) -> list[Path]:
    """n random images of the 101 classes (the background class left out), as files under `folder`."""
    archive = data_root() / "caltech101" / "101_ObjectCategories.tar.gz"
    with tarfile.open(archive) as tar:
        members = sorted(
            (m for m in tar.getmembers() if m.name.endswith(".jpg") and "BACKGROUND" not in m.name),
            key=lambda member: member.name,
        )
        order = np.random.default_rng(0).permutation(len(members))[:n]
        # In the archive's own order: going back in a compressed file means to start again.
        tar.extractall(folder, sorted((members[i] for i in order), key=lambda m: m.offset), filter="data")
    return [folder / members[i].name for i in order]


def random_atoms(paths: Sequence[Path], n_atoms: int) -> Array:
    """Descriptors of some images, as atoms: coding costs the same as with learned ones."""
    values = np.concatenate([d.values for d in DenseSIFT().transform(paths)])
    # Flat patches give the same descriptor over and over.
    values = values[np.linalg.norm(values, axis=1) > 0.5]
    return values[np.random.default_rng(0).choice(len(values), n_atoms, replace=False)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    point_to_shared_data()
    with tempfile.TemporaryDirectory(prefix="ddlcn-caltech101-") as folder:
        try:
            paths = extract_caltech101(Path(folder), max(COUNTS))
        except FileNotFoundError as error:
            console.print(f"Caltech 101 was not found ({error.filename}): nothing measured")
            return 0
        atoms = random_atoms(paths[:: max(COUNTS) // 40], N_ATOMS)
        uses = {}
        for n in COUNTS:
            uses[n] = use = measure_in_fresh_process(atoms, paths[:n], 5, 0.05, None)
            console.print(
                f"{n:,} images, {N_ATOMS:,} atoms: output {use.output / 1e6:,.0f} MB, "
                f"peak beyond it {use.beyond_output / 1e6:,.0f} MB"
            )
    most = max(use.beyond_output for use in uses.values())
    growth = uses[COUNTS[1]].beyond_output - uses[COUNTS[0]].beyond_output
    console.print(f"peak beyond the output under 1,000 MB: {most / 1e6:,.0f} MB, {verdict(most < BOUND)}")
    console.print(
        f"no growth from {COUNTS[0]:,} to {COUNTS[1]:,} images (under 50 MB): "
        f"{growth / 1e6:+,.0f} MB, {verdict(growth < GROWTH_BOUND)}"
    )
    return 1 if options.strict and (most >= BOUND or growth >= GROWTH_BOUND) else 0


def verdict(holds: bool) -> str:
    return "ok" if holds else "SHORT"


if __name__ == "__main__":
    sys.exit(main())

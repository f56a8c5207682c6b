"""`python -m benchmarks`: speed against peers, a few minutes on two quiet cores."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import rivals
from benchmarks.baselines import compare_ksvd, compare_lcksvd, compare_src, make_random_faces
from benchmarks.data import Faces, describe, load_faces, train_classifier
from benchmarks.encoding import compare_encoding
from benchmarks.learning import compare_learning, compare_threads
from benchmarks.pipeline import compare_pipeline
from benchmarks.sift import compare_sift
from benchmarks.timing import Bar, Row, count_short, make_table

SECTIONS = ("encoding", "learning", "sift", "pipeline", "baselines")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="parts to run (all)")
    parser.add_argument("--repeats", type=int, default=12, help="rounds, of which the best counts (12)")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    # Wide enough for every row where the output is no terminal, such as a log.
    console = Console(width=None if sys.stdout.isatty() else 150)
    started = time.perf_counter()

    faces = load_faces()
    console.print(f"Data: {faces.source}. {describe_machine()}")
    rows: list[Row] = []
    # One BLAS thread for everybody, so that "one thread" means one; `encode` and SPAMS share work out themselves.
    with threadpool_limits(1, user_api="blas"):
        model, images = train_classifier(faces)
        X = describe(images[:100], 40_000)
        for section in SECTIONS:
            if section not in options.only:
                continue
            if section == "baselines":
                found = run_baselines(faces, options.repeats)
            else:
                found = run_section(section, model, images, X, options.repeats)
            console.print(make_table(section, found))
            rows += found

    short = count_short(rows)
    with_bar = sum(row.verdict != "" for row in rows)
    console.print(f"{with_bar - short} of {with_bar} bars met. {time.perf_counter() - started:.0f} s in all.")
    return 1 if options.strict and short else 0


def run_section(section: str, model, images, X, repeats: int) -> list[Row]:  # type: ignore[no-untyped-def]
    """The rows of one part; sizes are such that the whole takes a few minutes."""
    atoms = model.dictionaries_[0]  # (570, 128)
    two_threads = Bar(">=", 1.7)
    if section == "encoding":
        nearest = compare_encoding(
            X,
            atoms,
            0.02,
            15,
            n_spams=4000,
            n_sklearn=200,
            repeats=repeats,
            against_spams=Bar(">=", 15),
            against_product=Bar("<=", 3.5),
            against_one_thread=two_threads,
        )
        everywhere = compare_encoding(
            X[:12_000],
            atoms,
            0.05,
            None,
            n_spams=4000,
            n_sklearn=200,
            repeats=repeats,
            against_spams=Bar(">=", 2),
            against_product=None,
            against_one_thread=two_threads,
        )
        return nearest + everywhere
    if section == "learning":
        # 15 atoms from as many descriptors as 32 images of one person give; 256 from many people's.
        few = compare_learning(X[:25_000], 15, spams_short=100, sklearn_batches=20, repeats=min(repeats, 3))
        many = compare_learning(X, 256, spams_short=100, sklearn_batches=10, repeats=min(repeats, 2))
        return [*few, *many, compare_threads(X, 8, 15, min(repeats, 3))]
    if section == "sift":
        return compare_sift(images[0], 4 * repeats)
    return compare_pipeline(model, images[:256], repeats)


def run_baselines(faces: Faces, repeats: int) -> list[Row]:
    """K-SVD, LC-KSVD and SRC on random faces of everybody."""
    X, y = make_random_faces(faces)
    few = min(repeats, 2)
    return [*compare_ksvd(X, y, repeats=few), *compare_lcksvd(X, y, repeats=few), *compare_src(X, y, repeats=few)]


def describe_machine() -> str:
    """Cores, how busy they were, and the versions that the numbers depend on."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    missing = [name for name in ("spams", "cv2", "dictlearn", "dictol") if rivals.load(name) is None]
    note = f" Not installed: {', '.join(missing)}." if missing else ""
    return f"{os.cpu_count()} cores, load {load} before the start, Python {platform.python_version()}.{note}"


if __name__ == "__main__":
    sys.exit(main())

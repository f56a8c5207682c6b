"""Made-up experiments and rows for the tests of the report: every shape that real ones have, and some they should not.

`python tests/report/made_up.py FOLDER` writes a page and a summary from them, to look at.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from ddlcn.experiments.catalogue import Cell, Experiment
from ddlcn.experiments.published import find_published
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row

HOSTILE = '<script>alert("x")</script>'
_VERSIONS = "ddlcn 0.1.0, numpy 2.4.6, numba 0.68.1"


def make_row(settings: Settings, seed: int, accuracy: float, n_classes: int = 10, **more: object) -> Row:
    """A finished run that is right about as often as asked."""
    # The seed of the noise is written out: a string's own hash differs from one process to the next.
    rng = np.random.default_rng([seed, n_classes, *settings.dataset.encode()])
    totals = rng.integers(20, 60, n_classes)
    mistakes = []
    for true in range(n_classes):
        wrong = rng.binomial(int(totals[true]), 1.0 - accuracy)
        for taken in rng.integers(0, n_classes - 1, wrong):
            mistakes.append([true, int(taken + (taken >= true)), 1])
    values: dict[str, object] = {
        "accuracy": accuracy,
        "balanced_accuracy": accuracy - 0.004,
        "mistakes": mistakes,
        "class_totals": totals.tolist(),
        "class_names": [f"{i}" if n_classes <= 10 else f"object {i:03d}" for i in range(n_classes)],
        "seconds_per_image": 0.0123 + 0.0001 * seed,
        "seconds_to_classify": 0.00021,
        "fit_seconds": 81.0 + seed,
        "peak_memory_mb": 912.0,
        "n_train": 10 * (settings.train_per_class or 600),
        "data": f"{settings.dataset} sha256 0123abcd",
        "versions": _VERSIONS,
        "machine": "AMD EPYC, 2 cores, 8 GB",
        "finished": f"2026-11-1{seed % 5}T12:00:00Z",
    }
    return Row(settings, seed, **{**values, **more})  # type: ignore[arg-type]


def make_table() -> Experiment:
    """A table with published numbers, bars, two rules in one place, comparisons, and a cell that is never run."""
    base = Settings("yaleb", train_per_class=32)
    cells = []
    for p, row, published in ((1, "(1-1)", 87.42), (15, "(15-15)", 97.2), (None, "(A-15)", 98.34)):
        for depth in (2, 3):
            settings = replace(base, dictionary_images=p, atoms_per_class=1 if p == 1 else 15, n_layers=depth)
            bar = 98.76 if p is None and depth == 2 else None
            cells.append(Cell(row, f"depth {depth}", settings, 10, find_published(published + 0.4 * (depth - 2)), bar))
    cells.append(Cell("(A-15)", "depth 2", replace(base, rule="published"), 10))
    cells.append(Cell("(55-15)", "depth 2", replace(base, dictionary_images=55), 10, find_published(98.0)))
    about = "38 people under 64 lights, 32 training images each, at 192 x 168 pixels."
    return Experiment("yaleb", "Extended Yale B, included", about, "table", "", tuple(cells), (("depth 2", "depth 3"),))


def make_digits() -> Experiment:
    """Depths 1 to 6 on one data set."""
    cells = tuple(
        Cell(
            "(100-100)",
            f"depth {d}",
            Settings("mnist", None, 100, 100, d),
            3,
            find_published(98.55 if d == 2 else None),
        )
        for d in range(1, 7)
    )
    return Experiment("mnist", "MNIST by depth", "", "table", "", cells, ())


def make_curve() -> Experiment:
    """A sweep over training images on two data sets, with "all" at the end of one."""
    cells = []
    for dataset, counts in (("caltech101", (5, 10, 15, 20, 30)), ("ar", (1, 5, 10, 20, None))):
        for q in (1, 15):
            for t in counts:
                published = {5: 60.2, 15: 74.6, 30: 82.0}.get(t or 0) if dataset == "caltech101" and q == 15 else None
                cells.append(
                    Cell("", f"q = {q}", Settings(dataset, t, atoms_per_class=q), 3, find_published(published))
                )
    about = "How many labelled images are enough?"
    return Experiment(
        "sweep", "Over training images", about, "curve", "train_per_class", tuple(cells), (("q = 1", "q = 15"),)
    )


def make_approximation() -> Experiment:
    """Reconstruction error by layer."""
    settings = Settings("yaleb", 32, n_layers=4, measure="approximation")
    cells = (
        Cell("Extended Yale B", "", settings, 3),
        Cell("MNIST", "", replace(settings, dataset="mnist", train_per_class=None), 3),
        Cell("AR", "", replace(settings, dataset="ar"), 3),
    )
    return Experiment("approximation", "Does the error fall with depth?", "", "table", "", cells, ())


def make_everything() -> tuple[list[Row], list[Experiment]]:
    """Rows for most cells of all experiments above, and those experiments."""
    rng = np.random.default_rng(0)
    table, digits, curve, errors = make_table(), make_digits(), make_curve(), make_approximation()
    rows = []
    for cell in table.cells[:-1]:
        level = {"(1-1)": 0.874, "(15-15)": 0.965, "(A-15)": 0.9895}[cell.row]
        for seed in range(10 if cell.row != "(15-15)" else 3):
            note = "p = 15 asked for, 12 there are: p = 12" if cell.row == "(15-15)" else ""
            bonus = 0.002 if cell.settings.rule == "published" else 0.0
            rows.append(make_row(cell.settings, seed, level + bonus + 0.002 * float(rng.normal()), 38, note=note))
    for cell in digits.cells:
        for seed in range(3):
            accuracy = 0.9868 + 0.0001 * seed + 0.00005 * float(rng.integers(-2, 3))
            rows.append(make_row(cell.settings, seed, accuracy))
    for cell in curve.cells:
        t, large = cell.settings.train_per_class or 40, cell.settings.dataset == "caltech101"
        level = 1.0 - (0.62 if large else 0.4) * t**-0.4 - (0.04 if cell.settings.atoms_per_class == 1 else 0.0)
        for seed in range(3 if t != 20 else 1):
            rows.append(make_row(cell.settings, seed, level + 0.006 * float(rng.normal()), 101 if large else 20))
    for i, cell in enumerate(errors.cells[:2]):
        for seed in range(3):
            values = [0.31, 0.42, 0.47, 0.49] if i == 0 else [0.4, 0.3, 0.25, 0.2]
            rows.append(Row(cell.settings, seed, errors=[v + 0.004 * float(rng.normal()) for v in values]))
    return rows, [table, digits, curve, errors]


if __name__ == "__main__":
    from ddlcn.report import write_report, write_summary

    folder = Path(sys.argv[1])
    everything = make_everything()
    write_report(*everything, folder / "report.html")
    write_summary(*everything, folder / "RESULTS.md")

"""What depth costs: time to code an image, and numbers in its feature, with and without a residual layer.

    python -m benchmarks.depth             # table, and docs/figures/depth-time.svg, docs/figures/depth-length.svg

The settings are those of `ddlcn reproduce depth` on Caltech 101; the accuracies are read from docs/results, the
times are measured here, all in one run, in turns, by one thread, on descriptors that are at hand. Bar: the
micro-dictionary (one atom per class and a residual layer) codes at least twice as fast as the smallest dictionary of
one layer that recognises as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.data import CHECKOUT, point_to_shared_data
from benchmarks.timing import Bar, time_in_turns
from ddlcn.blocks import Encoding
from ddlcn.datasets import Dataset, load_dataset
from ddlcn.descriptors import Descriptors, keep_descriptors
from ddlcn.experiments.catalogue import Cell, load_experiment
from ddlcn.experiments.run import make_classifier, make_features
from ddlcn.experiments.store import Row, read_rows
from ddlcn.images import NamedImage
from ddlcn.learning import Seeds, TrainingImages, learn_branch

# Images per class that dictionaries are learned from here: time does not depend on how good they are.
LEARNED_FROM = 4
TIMED_IMAGES = 32
SPEED_BAR = Bar(">=", 2.0)


@dataclass(frozen=True)
class Cost:
    """One setting: what it recognises (mean over classes, per cent; None: not run) and what it costs."""

    label: str
    atoms_per_class: int
    n_layers: int
    accuracy: float | None
    milliseconds: float
    length: int
    nonzeros: float


class AtHand:
    """Gives descriptors that were computed before: the image is one already."""

    def describe(self, image: Descriptors, name: str) -> Descriptors:
        return image


def cells_to_measure() -> list[Cell]:
    """One and two layers on Caltech 101, 30 images per class, one patch size."""
    cells = load_experiment("depth").cells
    return [
        cell for cell in cells
        if cell.settings.dataset == "caltech101" and cell.settings.train_per_class == 30
        and len(cell.settings.patch_size) == 1 and cell.settings.n_layers <= 2
    ]  # fmt: skip


def build(cell: Cell, data: Dataset) -> Encoding:
    """The forward pass of a cell, its descriptors at hand; dictionaries from a few images of every class."""
    classes = np.arange(len(data.class_names))
    chosen = np.concatenate([np.flatnonzero(data.labels == c)[:LEARNED_FROM] for c in classes])
    items = keep_descriptors([NamedImage(data.image_names[i], data.images[i]) for i in chosen])
    (config,) = make_classifier(cell.settings, seed=0).configure().branches
    branch = learn_branch(config, TrainingImages(items, data.labels[chosen], classes), Seeds.spawn(0))
    return Encoding([replace(branch, descriptors=AtHand(), _blocks=[])], [1.0])


def find_accuracy(cell: Cell, rows: Sequence[Row]) -> float | None:
    """Mean over classes, over the seeds that were run; per cent."""
    found = [row.balanced_accuracy for row in rows if row.settings == cell.settings and row.balanced_accuracy]
    return 100.0 * float(np.mean(found)) if found else None


def measure(rows: Sequence[Row], repeats: int) -> list[Cost]:
    """The cost of every cell."""
    data = load_dataset("caltech101")
    cells = cells_to_measure()
    features = make_features(cells[0].settings)
    spread = np.linspace(0, len(data.labels) - 1, TIMED_IMAGES).astype(int)
    described = [NamedImage(data.image_names[i], features.describe(data.images[i])) for i in spread]
    encodings = {f"{cell.row}, {cell.column}": build(cell, data) for cell in cells}
    pooled = {label: encoding.transform(described, n_jobs=1) for label, encoding in encodings.items()}

    def coding(encoding: Encoding) -> Any:
        return lambda: encoding.transform(described, n_jobs=1)

    seconds = time_in_turns({label: coding(encoding) for label, encoding in encodings.items()}, repeats)
    costs = []
    for cell, (label, F) in zip(cells, pooled.items(), strict=True):
        # In one layer the half for negative codes is empty: it is not counted.
        length = F.shape[1] // (2 if cell.settings.n_layers == 1 else 1)
        milliseconds = 1000.0 * seconds[label] / TIMED_IMAGES
        q, accuracy = cell.settings.atoms_per_class, find_accuracy(cell, rows)
        nonzeros = F.nnz / TIMED_IMAGES
        costs.append(Cost(label, q, cell.settings.n_layers, accuracy, milliseconds, length, nonzeros))
    return costs


def judge(costs: Sequence[Cost]) -> tuple[str, bool]:
    """The bar, in words: the micro-dictionary against the smallest one-layer dictionary that recognises as well."""
    micro = next(cost for cost in costs if cost.atoms_per_class == 1 and cost.n_layers == 2)
    plain = [cost for cost in costs if cost.n_layers == 1 and cost.accuracy is not None]
    if micro.accuracy is None or not plain:
        return "the accuracies are not in docs/results: run `ddlcn reproduce depth`", False
    as_good = [cost for cost in plain if cost.accuracy is not None and cost.accuracy >= micro.accuracy]
    rival = (
        min(as_good, key=lambda cost: cost.atoms_per_class) if as_good else max(plain, key=lambda c: c.accuracy or 0)
    )
    ratio = rival.milliseconds / micro.milliseconds
    least = "as good" if as_good else "best, and still not as good"
    text = (
        f"{micro.label}: {micro.accuracy:.1f} in {micro.milliseconds:.1f} ms an image; one layer, {least}: "
        f"{rival.label}, {rival.accuracy:.1f} in {rival.milliseconds:.1f} ms. Ratio {ratio:.2f}, bar {SPEED_BAR}"
    )
    return text, SPEED_BAR.is_met(ratio)


def draw(costs: Sequence[Cost], what: str, name: str, path: Path) -> None:
    """Accuracy against a cost, one line without and one with a residual layer, as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": what, "font.size": 11}):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axis = figure.add_subplot()
        for n_layers, colour, marker, label in (
            (1, "#0072B2", "o", "one layer"),
            (2, "#D55E00", "s", "and a residual layer"),
        ):
            line = [cost for cost in costs if cost.n_layers == n_layers and cost.accuracy is not None]
            x, y = [getattr(cost, what) for cost in line], [cost.accuracy or 0.0 for cost in line]
            axis.plot(x, y, color=colour, marker=marker, label=label)
            for cost, a, b in zip(line, x, y, strict=True):
                offset = (6, -13) if n_layers == 1 else (-4, 8)
                axis.annotate(str(cost.atoms_per_class), (a, b), offset, textcoords="offset points", color=colour)
        axis.set_xscale("log")
        axis.margins(0.1)
        low, high = axis.get_xlim()
        axis.xaxis.set_major_locator(LogLocator(subs=(1,) if high > 50 * low else (1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel(name)
        axis.set_ylabel("mean over classes, %")
        axis.set_title("Caltech 101, 30 per class; the numbers are atoms per class", fontsize=11, loc="left")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, loc="lower right")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.depth", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=Path, default=CHECKOUT / "docs" / "results", help="where accuracies are")
    parser.add_argument("--figures", type=Path, default=CHECKOUT / "docs" / "figures", help="folder for the figures")
    parser.add_argument("--repeats", type=int, default=5, help="rounds, of which the best counts (5)")
    chosen = parser.parse_args(arguments)
    point_to_shared_data()
    costs = measure(read_rows(chosen.rows), chosen.repeats)
    table = Table("setting", "mean over classes", "coding, ms an image", "feature length", "nonzeros")
    for cost in costs:
        accuracy = "not run" if cost.accuracy is None else f"{cost.accuracy:.2f}"
        table.add_row(cost.label, accuracy, f"{cost.milliseconds:.2f}", f"{cost.length:,}", f"{cost.nonzeros:,.0f}")
    console = Console()
    console.print(table)
    draw(costs, "milliseconds", "coding time per image, ms (one thread)", chosen.figures / "depth-time.svg")
    draw(costs, "length", "feature length", chosen.figures / "depth-length.svg")
    text, met = judge(costs)
    console.print(f"{text}: {'ok' if met else 'SHORT'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

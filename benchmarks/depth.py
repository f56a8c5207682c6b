"""What depth costs: time to code an image, and numbers in its feature, with and without a residual layer.

    python -m benchmarks.depth             # table, and docs/figures/depth-time.svg, docs/figures/depth-length.svg

The settings are those of `ddlcn reproduce depth` on Caltech 101; the accuracies are read from docs/results.jsonl, the
times are measured here, all in one run, in turns, by one thread, on descriptors that are at hand. Bar: the
micro-dictionary (one atom per class and a residual layer) codes at least twice as fast as the smallest dictionary of
one layer that recognises as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.data import CHECKOUT, point_to_shared_data
from benchmarks.timing import Bar, time_in_turns
from ddlcn.datasets import Dataset, load_dataset
from ddlcn.dictionaries import learn_layer1, learn_residual_layers, resolve_deep_atoms
from ddlcn.experiments.catalogue import Cell, load_experiment
from ddlcn.experiments.measure import make_network
from ddlcn.experiments.run import L1_RADIUS
from ddlcn.experiments.store import Row, read_rows
from ddlcn.features import DenseSIFT, Descriptors, describe_by_class, sample_descriptors
from ddlcn.network import TOL, Network

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


def build(cell: Cell, data: Dataset, features: DenseSIFT) -> Network:
    """The network of a cell, its descriptors at hand; dictionaries from a few images of every class."""
    settings = cell.settings
    chosen = np.concatenate([np.flatnonzero(data.labels == c)[:LEARNED_FROM] for c in range(len(data.class_names))])
    named = [(data.image_names[i], data.images[i]) for i in chosen]
    seeds = np.random.SeedSequence(0).spawn(4)
    by_class = describe_by_class(features, named, data.labels[chosen], None, seeds[0])
    layer1 = learn_layer1(by_class, settings.atoms_per_class, L1_RADIUS, seeds[1])
    layers = [layer1]
    if settings.n_layers > 1:
        n = settings.n_layers
        sizes = resolve_deep_atoms(settings.deep_atoms or "auto", n, len(layer1), settings.depth)
        sample = sample_descriptors(features, named, seeds[2])
        how = ((settings.beta,) * n, (settings.n_neighbors,) * n, TOL, L1_RADIUS, seeds[3])
        layers += learn_residual_layers(layer1, sample, sizes, *how)
    return make_network(settings, layers, AtHand())  # type: ignore[arg-type]


def find_accuracy(cell: Cell, rows: Sequence[Row]) -> float | None:
    """Mean over classes, over the seeds that were run; per cent."""
    found = [row.mean_over_classes for row in rows if row.settings == cell.settings and row.mean_over_classes]
    return 100.0 * float(np.mean(found)) if found else None


def measure(rows: Sequence[Row], repeats: int) -> list[Cost]:
    """The cost of every cell."""
    data = load_dataset("caltech101")
    cells = cells_to_measure()
    settings = cells[0].settings
    features = DenseSIFT(settings.patch_size[0], settings.step, settings.max_side)
    spread = np.linspace(0, len(data.labels) - 1, TIMED_IMAGES).astype(int)
    described = [("", features.describe(data.images[i])) for i in spread]
    networks = {f"{cell.row}, {cell.column}": build(cell, data, features) for cell in cells}
    pooled = {label: network.transform(described, n_jobs=1) for label, network in networks.items()}

    def coding(network: Network) -> Any:
        return lambda: network.transform(described, n_jobs=1)

    seconds = time_in_turns({label: coding(network) for label, network in networks.items()}, repeats)
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
        return "the accuracies are not in docs/results.jsonl: run `ddlcn reproduce depth`", False
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
    parser.add_argument("--rows", type=Path, default=CHECKOUT / "docs" / "results.jsonl", help="where accuracies are")
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

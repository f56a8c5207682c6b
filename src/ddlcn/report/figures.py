"""The figures of the report. In: grids, lines, confusions. Out: SVG text (see `svg`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ddlcn.report.approximation import ErrorLine
from ddlcn.report.classes import MOST_LABELS, Confusion
from ddlcn.report.contest import Panel, Standing
from ddlcn.report.joint import JointLine
from ddlcn.report.results import CellResult, Grid
from ddlcn.report.svg import FAINT, INK, finish, in_style, start
from ddlcn.report.writing import Spread, show_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, distinct for colour-blind readers; each line has its own marker as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
# More than this between the smallest and the largest value, and the axis is logarithmic.
_WIDE = 15.0
_AXIS_NAMES = {
    "train_per_class": "training images per class",
    "dictionary_images": "dictionary images per class, p",
    "atoms_per_class": "atoms per class, q",
    "n_layers": "depth (layers)",
    "n_neighbors": "nearest atoms, k",
    "beta": "weight of the penalty, β",
}


def choose_look(i: int) -> dict[str, Any]:
    """Colour and marker of the i-th line: the first 36 are all different."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]}


@in_style
def draw_curve(grid: Grid, name: str) -> str:
    """Accuracy over a setting: a panel for each data set, a line for each column, error bars of one sd."""
    x = grid.experiment.x
    panels: dict[str, list[CellResult]] = {}
    for result in grid.results:
        panels.setdefault(result.cell.settings.dataset, []).append(result)
    figure, axes = start(len(panels), width=7.2 if len(panels) == 1 else 4.9 * len(panels), height=3.9)
    for axis, (dataset, results) in zip(axes, panels.items(), strict=True):
        _draw_lines(axis, results, x)
        if len(panels) > 1:
            axis.set_title(dataset)
        axis.set_xlabel(_AXIS_NAMES.get(x, x.replace("_", " ")))
    axes[0].set_ylabel("accuracy over all test images, %")
    label = f"Line chart: {grid.experiment.title}, accuracy over {_AXIS_NAMES.get(x, x)}. The numbers are in the table."
    return finish(figure, name, label)


@in_style
def draw_costs(grid: Grid, name: str) -> str:
    """Costs of the methods of a curve: seconds to train, milliseconds per test image, on logarithmic scales."""
    x = grid.experiment.x
    figure, axes = start(2, width=9.8, height=3.9)
    columns: dict[str, list[CellResult]] = {}
    for result in grid.results:
        if result.ms_per_image is not None and result.fit_seconds is not None:
            columns.setdefault(result.cell.column, []).append(result)
    for axis, cost, label in zip(axes, ("fit_seconds", "ms_per_image"), ("to train, s", "per image, ms"), strict=True):
        for i, (column, results) in enumerate(columns.items()):
            points = sorted((getattr(r.cell.settings, x), getattr(r, cost)) for r in results)
            axis.plot([place for place, _ in points], [value for _, value in points], label=column, **choose_look(i))
        axis.set_yscale("log")
        axis.set_xlabel(_AXIS_NAMES.get(x, x.replace("_", " ")))
        axis.set_ylabel(label)
    axes[0].legend(loc="best", fontsize=9)
    return finish(figure, name, f"Line charts: {grid.experiment.title}, time to train and time per image.")


def _draw_lines(axis: Axes, results: Sequence[CellResult], x: str) -> None:
    lines: dict[str, list[CellResult]] = {}
    crowded = len({(r.cell.column, getattr(r.cell.settings, x, None)) for r in results}) < len(results)
    for result in results:
        # If a column has two points at one place, its rows are separate lines.
        label = f"{result.cell.column}, {result.cell.row}" if crowded else result.cell.column
        lines.setdefault(label, []).append(result)
    places, ticks, logarithmic = _place_points([getattr(result.cell.settings, x, None) for result in results])
    if logarithmic:
        axis.set_xscale("log")
    for i, (label, points) in enumerate(lines.items()):
        look = choose_look(i)
        points = sorted(points, key=lambda point: places[getattr(point.cell.settings, x, None)])
        ours = [(places[getattr(p.cell.settings, x, None)], p.over_images) for p in points if p.over_images is not None]
        if ours:
            axis.errorbar(
                [place for place, _ in ours],
                [spread.mean for _, spread in ours],
                yerr=[spread.sd or 0.0 for _, spread in ours],
                **look,
                capsize=3,
                elinewidth=1.2,
                label=label or "ours",
            )
        published = [
            (places[getattr(p.cell.settings, x, None)], p.cell.published.value)
            for p in points
            if p.cell.published is not None
        ]
        if published:
            axis.plot(
                [place for place, _ in published],
                [value for _, value in published],
                **look,
                markerfacecolor="none",
                linestyle=(0, (2, 2)),
                linewidth=1.2,
                label=f"{label}, published" if label else "published",
            )
    axis.set_xticks([place for place, _ in ticks], [text for _, text in ticks])
    axis.minorticks_off()
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        # matplotlib lists plain lines before those with error bars; ours come before published ones.
        order = sorted(
            range(len(labels)), key=lambda i: (list(lines).index(_find_line(labels[i], lines)), len(labels[i]))
        )
        axis.legend([handles[i] for i in order], [labels[i] for i in order], loc="best", fontsize=9.5)
    else:
        axis.text(0.5, 0.5, "not run", transform=axis.transAxes, ha="center", va="center")


def _find_line(label: str, lines: dict[str, list[CellResult]]) -> str:
    """The line that an entry of the legend belongs to."""
    return label if label in lines else label.removesuffix("published").removesuffix(", ") if label != "ours" else ""


def _place_points(values: Sequence[Any]) -> tuple[dict[Any, float], list[tuple[float, str]], bool]:
    """Position of each value, the ticks, and whether the axis is logarithmic. None (all) is last."""
    distinct = list(dict.fromkeys(values))
    numbers = sorted(float(value) for value in distinct if isinstance(value, int | float))
    if len(numbers) + (None in distinct) < len(distinct) or not numbers:
        places = {value: float(i) for i, value in enumerate(distinct)}
        return places, [(place, show_setting(value)) for value, place in places.items()], False
    logarithmic = numbers[0] > 0 and numbers[-1] / numbers[0] > _WIDE
    places = {value: float(value) for value in distinct if value is not None}
    if None in distinct:
        last, gaps = numbers[-1], max(len(numbers) - 1, 1)
        step = (last / numbers[0]) ** (1 / gaps) if logarithmic else (last - numbers[0]) / gaps
        places[None] = last * max(step, 1.5) if logarithmic else last + (step or max(last, 1.0))
    ticks = sorted((place, show_setting(value)) for value, place in places.items())
    return places, ticks, logarithmic


@in_style
def draw_contest(panels: Sequence[Panel], name: str) -> str:
    """Accuracy against images per class: ours and the best others in colour, all others faint; 95 % intervals."""
    shown = [panel for panel in panels if panel.standings]
    rows = -(-len(shown) // 2)
    figure, axes = start(len(shown), width=11.0, height=4.6 * rows, n_columns=min(2, len(shown)))
    for axis, panel in zip(axes, shown, strict=True):
        prominent = panel.prominent
        for standing in panel.standings:
            if standing not in prominent:
                points = _list_points(standing)
                axis.plot([n for n, _ in points], [spread.mean for _, spread in points], color=FAINT, linewidth=1.0)
        for i, standing in enumerate(prominent):
            points = _list_points(standing)
            axis.errorbar(
                [n for n, _ in points],
                [spread.mean for _, spread in points],
                yerr=[spread.half for _, spread in points],
                **choose_look(i),
                linewidth=2.4 if standing.is_ours else 1.5,
                capsize=3,
                elinewidth=1.0,
                label=standing.method,
                zorder=4 if standing.is_ours else 3,
            )
        n_others = len(panel.standings) - len(prominent)
        if n_others:
            axis.plot([], [], color=FAINT, linewidth=1.0, label=f"{n_others} others, in the table")
        axis.set_xscale("log")
        axis.set_xticks(panel.counts, [str(n) for n in panel.counts])
        axis.minorticks_off()
        axis.set_ylim(0.0, 101.0)
        axis.set_title(panel.dataset)
        axis.set_xlabel(_AXIS_NAMES["train_per_class"])
        axis.set_ylabel("recognised, %")
        axis.legend(loc="lower right", fontsize=9)
    return finish(
        figure, name, "Learning curves of all methods, a panel for each data set. The numbers are in the tables."
    )


def _list_points(standing: Standing) -> list[tuple[int, Spread]]:
    points = sorted(standing.points.items())
    return [(n, result.accuracy) for n, result in points if result.accuracy is not None]


@in_style
def draw_differences(grids: Sequence[Grid], name: str) -> str:
    """Ours minus published for every cell that has both: a row for each experiment, a dot for each cell."""
    shown = [grid for grid in grids if any(result.verdict for result in grid.results)]
    figure, (axis,) = start(1, width=9.4, height=1.1 + 0.46 * len(shown))
    looks = {"reached": ("#009E73", "o"), "close": ("#8a94a1", "D"), "short": ("#D55E00", "v")}
    for verdict, (colour, marker) in looks.items():
        found = [(r.difference or 0.0, i) for i, grid in enumerate(shown) for r in grid.results if r.verdict == verdict]
        axis.plot(
            [difference for difference, _ in found],
            [i for _, i in found],
            linestyle="none",
            marker=marker,
            color=colour,
            alpha=0.8,
            markeredgewidth=0,
            markersize=8,
        )
    axis.axvline(0.0, color=INK, linewidth=1.2)
    axis.set_yticks(range(len(shown)), [_shorten(grid.experiment.title, 44) for grid in shown])
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlabel("ours minus published, in points of accuracy")
    axis.spines["left"].set_visible(False)
    return finish(figure, name, "Dot chart: ours minus published for every cell. The numbers are in the tables below.")


@in_style
def draw_errors(lines: Sequence[ErrorLine], name: str) -> str:
    """Relative reconstruction error by layer."""
    figure, (axis,) = start(1, width=7.2, height=3.7)
    for i, line in enumerate(line for line in lines if line.errors):
        axis.errorbar(
            range(1, len(line.errors) + 1),
            [error.mean for error in line.errors],
            yerr=[error.sd or 0.0 for error in line.errors],
            **choose_look(i),
            capsize=3,
            elinewidth=1.2,
            label=line.label,
        )
    deepest = max(len(line.errors) for line in lines)
    axis.set_xticks(range(1, deepest + 1))
    axis.set_xlabel("layer")
    axis.set_ylabel("relative reconstruction error")
    axis.set_ylim(bottom=0.0)
    axis.legend(loc="best", fontsize=9.5)
    return finish(figure, name, "Line chart: relative reconstruction error by layer. The numbers are in the table.")


@in_style
def draw_epochs(lines: Sequence[JointLine], name: str) -> str:
    """Both errors of joint training over the epochs, as shares of the first epoch's."""
    figure, axes = start(2, width=9.8, height=3.7)
    trained = [line for line in lines if line.n_trained]
    for axis, which in zip(axes, ("classification", "reconstruction"), strict=True):
        for i, line in enumerate(trained):
            shares = [100 * share for share in getattr(line, which)]
            axis.plot(range(1, len(shares) + 1), shares, **choose_look(i), markersize=3, label=line.label)
        axis.set_title(f"{which} error")
        axis.set_xlabel("epoch")
        axis.set_ylim(bottom=0.0)
    axes[0].set_ylabel("% of the first epoch's")
    axes[1].legend(loc="lower left", fontsize=8.5)
    return finish(figure, name, "Line chart: both errors of joint training by epoch. What they came to is in the text.")


@in_style
def draw_confusion(confusion: Confusion, name: str) -> str:
    """A confusion map: the shares of each class (row) that are predicted as each class (column)."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    n = len(confusion.names)
    labelled = n <= MOST_LABELS
    side = 5.2 if not labelled else float(np.clip(2.4 + 0.24 * n, 4.2, 8.6))
    figure, (axis,) = start(1, width=side + 1.0, height=side)
    totals = confusion.counts.sum(axis=1, keepdims=True)
    shares = 100.0 * confusion.counts / np.maximum(totals, 1)
    # From transparent to full colour, so that the page's background shows at zero, light or dark.
    colours = LinearSegmentedColormap.from_list("mistakes", [(0.0, 0.45, 0.7, 0.0), (0.0, 0.45, 0.7, 1.0)])
    # Mistakes are a few per cent: on a linear scale only the diagonal would be visible.
    picture = axis.imshow(shares, cmap=colours, norm=PowerNorm(0.45, 0.0, 100.0), interpolation="nearest")
    axis.grid(False)
    axis.set_xlabel("predicted as")
    axis.set_ylabel("true class")
    if labelled:
        names = [_shorten(text) for text in confusion.names]
        upright = n > 12 or max(map(len, names)) > 3
        axis.set_xticks(range(n), names, rotation=90 if upright else 0, fontsize=8.5)
        axis.set_yticks(range(n), names, fontsize=8.5)
    else:
        axis.set_xticks([])
        axis.set_yticks([])
    if n <= 12:
        for true, predicted in np.argwhere(confusion.counts > 0):
            ink = "white" if shares[true, predicted] > 35.0 else INK
            text = str(confusion.counts[true, predicted])
            axis.text(predicted, true, text, ha="center", va="center", fontsize=7.5, color=ink)
    bar = figure.colorbar(picture, ax=axis, fraction=0.045, pad=0.03, ticks=[0, 1, 5, 20, 50, 100])
    bar.set_label("% of the true class")
    bar.outline.set_visible(False)  # type: ignore[operator, unused-ignore]
    return finish(
        figure,
        name,
        f"Confusion map of {confusion.dataset}, {n} classes. The largest confusions are listed beside it.",
    )


def _shorten(name: str, length: int = 18) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"

"""Which classes are predicted as which: confusion matrices, and the best and the worst classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddlcn.experiments.store import Row
from ddlcn.report.results import CellResult, Grid

# Above this many classes the names on a map are illegible, and the most confused pairs are listed instead.
MOST_LABELS = 40
_PAIRS = 20
_CLASSES_SHOWN = 5


@dataclass(frozen=True)
class ClassScore:
    """How often a class was recognised, over all seeds."""

    index: int
    name: str
    accuracy: float  # per cent
    n: int  # test images, over all seeds


@dataclass(frozen=True)
class Confusion:
    """One data set, at its best-covered cell."""

    result: CellResult
    names: tuple[str, ...]
    counts: NDArray[np.int64]  # (true, predicted), summed over seeds
    best: tuple[ClassScore, ...]
    worst: tuple[ClassScore, ...]
    pairs: tuple[tuple[str, str, int, float], ...]  # true, predicted, times, share of the true class in per cent

    @property
    def dataset(self) -> str:
        return self.result.cell.settings.dataset

    @property
    def is_large(self) -> bool:
        return len(self.names) > MOST_LABELS


def read_confusions(grids: Sequence[Grid]) -> list[Confusion]:
    """One for each data set that has rows with class totals, in order of the data sets' names."""
    chosen: dict[str, CellResult] = {}
    for grid in grids:
        for result in grid.results:
            if result.cell.settings.method != "DDLCN" or not any(row.class_totals for row in result.rows):
                continue
            dataset = result.cell.settings.dataset
            if dataset not in chosen or _coverage(result) > _coverage(chosen[dataset]):
                chosen[dataset] = result
    return [_read(chosen[dataset]) for dataset in sorted(chosen)]


def _coverage(result: CellResult) -> tuple[bool, bool, int, int, float]:
    """Sort key of the cell to show: our own method, clean, most images, most seeds, then accuracy."""
    settings = result.cell.settings
    accuracy = 0.0 if result.over_images is None else result.over_images.mean
    n_train = max(row.n_train for row in result.rows)
    return settings.layer == "dictionary", settings.rule == "clean", n_train, len(result.rows), accuracy


def _read(result: CellResult) -> Confusion:
    rows = [row for row in result.rows if row.class_totals]
    # Rows of another edition of the data, with another number of classes, cannot be summed.
    rows = [row for row in rows if len(row.class_totals) == len(rows[0].class_totals)]
    counts = sum_counts(rows)
    names = name_classes(rows[0])
    totals = counts.sum(axis=1)
    scores = [
        ClassScore(i, names[i], 100.0 * float(counts[i, i]) / float(totals[i]), int(totals[i]))
        for i in range(len(names))
        if totals[i] > 0
    ]
    shown = min(_CLASSES_SHOWN, len(scores) // 2)
    ranked = sorted(scores, key=lambda score: (-score.accuracy, -score.n, score.index))
    best, worst = tuple(ranked[:shown]), tuple(reversed(ranked[len(ranked) - shown :]))
    return Confusion(result, names, counts, best, worst, _most_confused(counts, names))


def sum_counts(rows: Sequence[Row]) -> NDArray[np.int64]:
    """Confusion matrix (true, predicted), summed: the mistakes, and on the diagonal the correct ones."""
    n = len(rows[0].class_totals)
    counts = np.zeros((n, n), dtype=np.int64)
    for row in rows:
        counts[np.arange(n), np.arange(n)] += np.asarray(row.class_totals, dtype=np.int64)
        for true, predicted, times in row.mistakes:
            counts[true, predicted] += times
            counts[true, true] -= times
    return counts


def name_classes(row: Row) -> tuple[str, ...]:
    """Names of the classes; numbers if the row has none."""
    n = len(row.class_totals)
    return tuple(row.class_names) if len(row.class_names) == n else tuple(f"class {i}" for i in range(n))


def _most_confused(counts: NDArray[np.int64], names: Sequence[str]) -> tuple[tuple[str, str, int, float], ...]:
    mistakes = counts - np.diag(np.diag(counts))
    order = np.argsort(-mistakes, axis=None, kind="stable")[:_PAIRS]
    totals = counts.sum(axis=1)
    pairs = []
    for true, predicted in zip(*np.unravel_index(order, mistakes.shape), strict=True):
        times = int(mistakes[true, predicted])
        if times > 0:
            pairs.append((names[true], names[predicted], times, 100.0 * times / int(totals[true])))
    return tuple(pairs)

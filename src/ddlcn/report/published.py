"""Every number that the paper prints, beside ours or beside the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddlcn.experiments.published import PublishedNumber, list_tables, load_published
from ddlcn.report.contest import Panel, read_panels
from ddlcn.report.results import CellResult, Grid, compare
from ddlcn.report.writing import show_difference, show_number

INCLUDED = (
    "Times: ours are of the whole pipeline, from a decoded picture to its class, on one thread; in brackets, where it "
    "was measured, of coding, pooling and classification with the descriptors there, and of the classifier alone (for "
    "a method on vectors, all that it does with a vector). What the paper's times include, and on which machine, is "
    "not stated; they are not compared."
)

# Accuracy over all images and the mean over classes are both shown where they differ by more than so many points.
SAME = 0.5
# Ours this many points above the paper's figure of another method asks for an explanation.
FAR = 3.0


@dataclass(frozen=True)
class NumberLine:
    """One number of the paper, and the cells of ours that are made to be compared with it."""

    number: PublishedNumber
    found: tuple[tuple[str, CellResult], ...]  # titles of experiments, cells that were run; the first counts
    n_images: float | None = None  # per class, with which the method of that cell would have the published accuracy

    @property
    def verdict(self) -> str:
        """ "reached", "close" (short by no more than one sd of ours), "short"; "" for times and what was not run."""
        if self.number.is_time or not self.found:
            return ""
        return compare(self.found[0][1].accuracy, self.number.value)

    @property
    def reason(self) -> str:
        """Why nothing of ours is there; "" if it is."""
        return "" if self.found else self.number.not_run or "not run"

    @property
    def where(self) -> str:
        """Which of our runs counts."""
        if not self.found:
            return ""
        title, result = self.found[0]
        return ", ".join(filter(None, (title, result.cell.row, result.cell.column)))

    @property
    def remark(self) -> str:
        """Which run of ours, or why none; and what is doubtful about the published number."""
        parts = [self.where or self.reason]
        if self.n_images is not None:
            parts.append(f"ours has the published figure with about {self.n_images:.0f} training images of a class")
        return "; ".join(filter(None, (*parts, self.number.note)))

    @property
    def ours(self) -> str:
        if not self.found:
            return ""
        result = self.found[0][1]
        if self.number.is_time:
            parts = [each for each in (result.ms_to_code, result.ms_to_classify) if each is not None]
            inside = f" ({'; '.join(map(show_number, parts))})" if parts else ""
            return show_number(result.ms_per_image) + inside
        assert result.accuracy is not None
        of_classes = result.cell.over == "classes"
        text = result.accuracy.show() + (" over classes" if of_classes else "")
        other = result.over_images if of_classes else result.over_classes
        if other is not None and abs(other.mean - result.accuracy.mean) > SAME:
            text += f" ({other.show()} over {'images' if of_classes else 'classes'})"
        return text

    @property
    def difference(self) -> str:
        if not self.verdict:
            return ""
        accuracy = self.found[0][1].accuracy
        assert accuracy is not None
        return show_difference(accuracy.mean - self.number.value) + (
            " (within one sd)" if self.verdict == "close" else ""
        )


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper."""

    number: str
    subject: str
    lines: tuple[NumberLine, ...]


def read_tables(grids: Sequence[Grid]) -> list[PaperTable]:
    """All tables of the paper; none if the experiments have nothing to do with it."""
    cells: dict[str, list[tuple[str, CellResult]]] = {}
    for grid in grids:
        for result in (*grid.timed, *grid.results):
            if result.cell.published is not None and result.cell.published.name:
                cells.setdefault(result.cell.published.name, []).append((grid.experiment.title, result))
    if not cells:
        return []
    by_row: dict[tuple[str, str], list[tuple[str, CellResult]]] = {}
    for name, number in load_published().items():
        by_row.setdefault((number.table, number.row), []).extend(cells.get(name, []))
    panels = [panel for grid in grids if grid.experiment.kind == "contest" for panel in read_panels(grid)]
    lines = []
    for name, number in load_published().items():
        own = cells.get(name, [])
        if number.is_time:  # cells that measure it; else those of the row's accuracies, which are timed too
            own = [*own, *by_row.get((number.table, number.row), [])]
        found = [each for each in own if (each[1].ms_per_image if number.is_time else each[1].accuracy) is not None]
        lines.append(NumberLine(number, tuple(found), _find_count(panels, number, found)))
    return [
        PaperTable(table, subject, tuple(line for line in lines if line.number.table == table))
        for table, subject in list_tables()
    ]


def _find_count(
    panels: Sequence[Panel], number: PublishedNumber, found: Sequence[tuple[str, CellResult]]
) -> float | None:
    """Where a method on vectors is far above the paper's figure: how many images per class would explain it."""
    if number.is_time or number.is_own or not found:
        return None
    result = found[0][1]
    if result.accuracy is None or result.accuracy.mean < number.value + FAR:
        return None
    settings = result.cell.settings
    for panel in panels:
        for standing in panel.standings:
            last = standing.last
            same = (panel.dataset, standing.method) == (settings.dataset, settings.method)
            if same and last is not None and settings.vectors and last.cell.settings.vectors == settings.vectors:
                return standing.find_count(number.value)
    return None


def describe_metrics(tables: Sequence[PaperTable], table: str = "V", column: str = "30") -> str:
    """Both accuracies of the methods of one column, each in its order; "" where fewer than two were run."""
    lines = [line for each in tables if each.number == table for line in each.lines if line.number.column == column]
    found = {line.number.row: line.found[0][1] for line in lines if line.found}
    images = {row: result.over_images.mean for row, result in found.items() if result.over_images is not None}
    classes = {row: result.over_classes.mean for row, result in found.items() if result.over_classes is not None}
    if len(images) < 2 or len(classes) < 2:
        return ""

    def rank(values: dict[str, float]) -> str:
        ordered = sorted(values.items(), key=lambda each: -each[1])
        return ", ".join(f"{row} {value:.1f}" for row, value in ordered)

    gap = max(abs(images[row] - classes[row]) for row in images.keys() & classes.keys())
    return (
        f"The paper does not say whether an accuracy is over all test images or the mean over classes. In table "
        f"{table} with {column} images per class the two differ by up to {gap:.1f} points, and methods must be "
        f"compared by the same one. Ours over all test images: {rank(images)}. Mean over classes: {rank(classes)}."
    )


def count_numbers(tables: Sequence[PaperTable]) -> str:
    """The count, in words."""
    lines = [line for table in tables for line in table.lines]
    accuracies = [line for line in lines if not line.number.is_time]
    own = [line for line in accuracies if line.number.is_own]
    times = [line for line in lines if line.number.is_time]
    return (
        f"The paper prints {len(lines)} numbers in its tables. {len(accuracies)} are accuracies: "
        f"{_count_verdicts(accuracies)}. {len(own)} of them are DDLCN's own: {_count_verdicts(own)}. "
        f"{len(times)} are times; {sum(bool(line.found) for line in times)} of them stand beside ours."
    )


def _count_verdicts(lines: Sequence[NumberLine]) -> str:
    verdicts = [line.verdict for line in lines]
    return (
        f"ours is at or above {verdicts.count('reached')}, short of {verdicts.count('close')} by no more than one "
        f"standard deviation, short of {verdicts.count('short')} by more, and {verdicts.count('')} were not run"
    )

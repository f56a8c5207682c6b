"""Rows in cells: what was run of each table and curve, compared with the published number and with our bar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddlcn.experiments.catalogue import Cell, Experiment, make_quick
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report.writing import Spread, average, show_setting

# Rounding may leave a mean just below a published number; that is no shortfall.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CellResult:
    """One cell and its rows. Numbers are in per cent."""

    cell: Cell
    rows: tuple[Row, ...]  # ascending by seed
    over_images: Spread | None = None
    over_classes: Spread | None = None
    notes: tuple[int, ...] = ()  # numbers of its footnotes
    gave_up: str = ""  # "over budget" or "failed", if a run ended without a figure

    @property
    def is_run(self) -> bool:
        return bool(self.rows or self.gave_up)

    @property
    def state(self) -> str:
        """Why there is no number."""
        return self.gave_up or "not run"

    @property
    def fit_seconds(self) -> float | None:
        """Mean over seeds."""
        return average([row.fit_seconds for row in self.rows])

    @property
    def ms_per_image(self) -> float | None:
        """Mean over seeds; the whole pipeline, one thread."""
        seconds = average([row.seconds_per_image for row in self.rows])
        return None if seconds is None else 1000.0 * seconds

    @property
    def ms_to_code(self) -> float | None:
        """The same without the descriptors; None where it was not measured."""
        seconds = average([row.seconds_to_code for row in self.rows])
        return None if seconds is None else 1000.0 * seconds

    @property
    def ms_to_classify(self) -> float | None:
        """The same of the classifier alone: of codes, or of vectors."""
        seconds = average([row.seconds_to_classify for row in self.rows])
        return None if seconds is None else 1000.0 * seconds

    @property
    def accuracy(self) -> Spread | None:
        """The accuracy that the published number and the bar refer to."""
        return self.over_classes if self.cell.over == "classes" else self.over_images

    @property
    def difference(self) -> float | None:
        """Ours minus published, in points."""
        if self.accuracy is None or self.cell.published is None:
            return None
        return self.accuracy.mean - self.cell.published.value

    @property
    def verdict(self) -> str:
        """ "reached", "close" (short by no more than one sd), "short", or "" if a number is missing."""
        published = self.cell.published
        return "" if published is None else compare(self.accuracy, published.value)

    @property
    def bar_verdict(self) -> str:
        """ "reached", "short" or ""; a bar allows no sd."""
        verdict = compare(self.accuracy, self.cell.bar)
        return "short" if verdict == "close" else verdict


@dataclass(frozen=True)
class Grid:
    """An experiment as it is shown on the page."""

    experiment: Experiment
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    slots: dict[tuple[str, str], list[CellResult]]
    results: tuple[CellResult, ...]  # cells that measure accuracy, in the experiment's order
    by_layer: tuple[CellResult, ...]  # cells that measure something of every layer
    timed: tuple[CellResult, ...]  # cells that measure times alone
    footnotes: tuple[str, ...] = ()

    @property
    def has_published(self) -> bool:
        return any(result.cell.published is not None for result in self.results)

    @property
    def has_others(self) -> bool:
        """Whether it has other methods than DDLCN, so that times are shown."""
        return any(result.cell.settings.method != "DDLCN" for result in self.results)


def choose_rows(rows: Sequence[Row]) -> tuple[list[Row], bool]:
    """The rows to report, and whether they are only a quick look. Duplicate runs count once."""
    if not rows:
        raise ValueError("there are no results to report: run `ddlcn reproduce NAME` first, or name another file")
    once = {(row.settings.make_key(row.seed)): row for row in reversed(rows)}
    ordered = sorted(once.values(), key=Row.sort_key)
    full = [row for row in ordered if not row.settings.quick]
    return (full, False) if full else (ordered, True)


def choose_experiments(experiments: Sequence[Experiment], rows: Sequence[Row], quick: bool) -> list[Experiment]:
    """Experiments that have a cell. For a quick look: their quick forms, and only those that were run."""
    chosen = [experiment for experiment in experiments if experiment.cells]
    if quick:
        run = {row.settings for row in rows}
        forms = [e if all(cell.settings.quick for cell in e.cells) else make_quick(e) for e in chosen]
        chosen = [form for form in forms if any(cell.settings in run for cell in form.cells)]
    if not chosen:
        raise ValueError("there is no table or figure to report: none of the experiments given has a cell with results")
    return chosen


def group_by_settings(rows: Iterable[Row]) -> dict[Settings, list[Row]]:
    """Rows of equal settings, ascending by seed."""
    groups: dict[Settings, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.seed):
        groups[row.settings].append(row)
    return dict(groups)


def fill_grid(experiment: Experiment, groups: dict[Settings, list[Row]]) -> Grid:
    """Assign every row to its cell."""
    footnotes: list[str] = []
    slots: dict[tuple[str, str], list[CellResult]] = defaultdict(list)
    results, by_layer, timed = [], [], []
    for cell in experiment.cells:
        rows = tuple(row for row in groups.get(cell.settings, []) if row.seed < cell.seeds)
        if cell.settings.measure == "time":
            timed.append(CellResult(cell, tuple(row for row in rows if row.seconds_per_image is not None)))
            continue
        if cell.settings.measure != "accuracy":
            by_layer.append(CellResult(cell, tuple(row for row in rows if row.errors or row.layers)))
            continue
        ended = [row.note.partition(":")[0] for row in rows if row.accuracy is None]
        rows = tuple(row for row in rows if row.accuracy is not None)
        notes = sorted({row.note for row in rows if row.note})
        footnotes += [note for note in notes if note not in footnotes]
        result = CellResult(
            cell,
            rows,
            _per_cent([row.accuracy for row in rows]),
            _per_cent([row.balanced_accuracy for row in rows]),
            tuple(footnotes.index(note) + 1 for note in notes),
            ended[0] if ended else "",
        )
        results.append(result)
        slots[_place(experiment, cell)].append(result)
    row_names = tuple(dict.fromkeys(row for row, _ in slots))
    column_names = tuple(dict.fromkeys(column for _, column in slots))
    return Grid(
        experiment,
        row_names,
        column_names,
        dict(slots),
        tuple(results),
        tuple(by_layer),
        tuple(timed),
        tuple(footnotes),
    )


def compare(ours: Spread | None, goal: float | None) -> str:
    """ "reached", "close" (short by no more than one sd), "short", or "" if a number is missing."""
    if ours is None or goal is None:
        return ""
    if ours.mean >= goal - _ROUNDING:
        return "reached"
    return "close" if ours.sd is not None and goal - ours.mean <= ours.sd else "short"


def _place(experiment: Experiment, cell: Cell) -> tuple[str, str]:
    """Row and column. The table behind a curve has a row for each point of its axis."""
    if experiment.kind != "curve":
        return cell.row, cell.column
    point = show_setting(getattr(cell.settings, experiment.x, None))
    dataset = cell.settings.dataset if len(experiment.dataset_names) > 1 else ""
    row = cell.row if cell.row != point and len({other.row for other in experiment.cells}) > 1 else ""
    return ", ".join(filter(None, (dataset, row if row != dataset else "", point))), cell.column


def _per_cent(values: Iterable[float | None]) -> Spread | None:
    spread = Spread.of([value for value in values if value is not None])
    return None if spread is None else spread.scaled(100.0)

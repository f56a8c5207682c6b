"""Times and memory of the runs, and where and when they were made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.report.results import Grid
from ddlcn.report.writing import average, describe, natural_key, show_number

# A data set of more identities has runs of its own; they are counted.
MAX_IDENTITIES = 3


@dataclass(frozen=True)
class TimeLine:
    """Means over seeds of one setting, or medians over the settings of a data set; None: not measured."""

    dataset: str
    label: str
    n: int
    whole_ms: float | None
    classify_ms: float | None
    fit_seconds: float | None
    memory_mb: float | None
    finished: str = ""


@dataclass(frozen=True)
class Origin:
    """Runs made on one machine with one set of versions."""

    machine: str
    versions: str
    n: int
    first: str
    last: str


def describe_times(grid: Grid) -> list[str]:
    """A sentence for each cell that measures times alone."""
    sentences = []
    for result in grid.timed:
        label = ", ".join(filter(None, (result.cell.row, result.cell.column)))
        if not result.rows:
            sentences.append(f"{label}: not run.")
            continue
        whole, code, classify = map(show_number, (result.ms_per_image, result.ms_to_code, result.ms_to_classify))
        sentences.append(
            f"{label}: {whole} ms an image, {code} of them without the descriptors, {classify} for the classifier."
        )
    return sentences


def list_times(groups: dict[Settings, list[Row]]) -> dict[str, list[TimeLine]]:
    """By data set, one line for each setting."""
    lines: dict[str, list[TimeLine]] = defaultdict(list)
    for settings, rows in groups.items():
        if all(row.seconds_per_image is None and row.fit_seconds is None for row in rows):
            continue
        lines[settings.dataset].append(
            TimeLine(
                settings.dataset,
                describe(settings),
                len(rows),
                average([row.seconds_per_image for row in rows], 1000.0),
                average([row.seconds_to_classify for row in rows], 1000.0),
                average([row.fit_seconds for row in rows]),
                average([row.peak_memory_mb for row in rows]),
                max(row.finished for row in rows),
            )
        )
    return {dataset: sorted(lines[dataset], key=lambda line: natural_key(line.label)) for dataset in sorted(lines)}


def summarise_times(times: dict[str, list[TimeLine]]) -> list[TimeLine]:
    """By data set, the median over its settings."""
    return [
        TimeLine(
            dataset,
            "",
            len(lines),
            _median([line.whole_ms for line in lines]),
            _median([line.classify_ms for line in lines]),
            _median([line.fit_seconds for line in lines]),
            _median([line.memory_mb for line in lines]),
        )
        for dataset, lines in times.items()
    ]


def list_origins(rows: Sequence[Row]) -> list[Origin]:
    """Machines and versions, the one with most runs first."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        places[row.machine or "machine not recorded", row.versions or "versions not recorded"].append(row.finished)
    origins = [
        Origin(machine, versions, len(dates), min(filter(None, dates), default=""), max(dates))
        for (machine, versions), dates in places.items()
    ]
    return sorted(origins, key=lambda origin: (-origin.n, origin.machine, origin.versions))


def list_data(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The data that the runs used: (data set, identity); of a set with many runs of its own, the first and how many."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.data:
            found[row.settings.dataset].add(row.data)
    return [
        (dataset, each)
        for dataset, identities in sorted(found.items())
        for each in (sorted(identities) if len(identities) <= MAX_IDENTITIES else [_count_runs(identities)])
    ]


def _count_runs(identities: set[str]) -> str:
    return f"{min(identities)} and {len(identities) - 1} more, one for each run of the distribution"


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

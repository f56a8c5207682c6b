"""The paper's tables and figures as data: one TOML file each, read into `Experiment`s.

name, title, about          its name and description
kind                        "table" (rows x columns), "curve" (over the setting named by `x`), or "contest" (a curve of
                            many methods, `column`, on several data sets)
seeds                       number of draws
[settings]                  settings that all cells share, named as in `Settings`
[[cells]]                   row, column: its place; any other key is a setting of the cell;
                            published: the place of the paper's number, as in "III, DDLCN-2 (1-1), Included"
                            (ddlcn.experiments.published), or a number in per cent; bar: our goal; seeds;
                            over: the accuracy that these two refer to, "images" (default) or "classes"
[[sweeps]]                  many cells at once: each list in `each` is a setting's values, and every combination is a
                            cell; row and column are patterns such as "{dataset}"; anything else as in a cell
[[compare]]                 a, b: two columns (or two rows) to test against each other over the seeds, in pairs
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from ddlcn.baselines.registry import find_missing
from ddlcn.descriptors.pretrained import has_networks
from ddlcn.experiments.published import FILE, PublishedNumber, find_published
from ddlcn.experiments.settings import Settings
from ddlcn.utils.validation import check_choice

# In the order of the paper; all others follow by name.
_ORDER = ("yaleb", "ar", "caltech101", "caltech256", "mnist")
# Number of cells of a quick run, spread over the table.
QUICK_CELLS = 12
_CELL_KEYS = ("row", "column", "published", "bar", "seeds", "over")


@dataclass(frozen=True)
class Cell:
    """One number of a table, or one point of a curve."""

    row: str
    column: str
    settings: Settings
    seeds: int
    published: PublishedNumber | None = None  # None: not given in the paper, or not available
    bar: float | None = None  # per cent
    over: str = "images"  # what these two refer to: accuracy over all test "images", or the mean over "classes"


@dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str
    title: str
    about: str
    kind: str
    x: str  # of a curve: the setting along the axis
    cells: tuple[Cell, ...]
    compare: tuple[tuple[str, str], ...]

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """The data sets it needs, in order."""
        return tuple(dict.fromkeys(cell.settings.dataset for cell in self.cells))


def experiment_names() -> tuple[str, ...]:
    """The names of all experiments: the paper's tables first."""
    files = resources.files("ddlcn.experiments").joinpath("paper").iterdir()
    names = sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml") and f.name != FILE)
    return (*_ORDER, *(name for name in names if name not in _ORDER))


def load_experiment(name: str) -> Experiment:
    """Load an experiment by its name, or from a user's TOML file."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"{name} does not exist: pass a TOML file, or one of {', '.join(experiment_names())}")
        return parse_experiment(path.stem, _read_toml(name, path.read_text()))
    if name not in experiment_names():
        raise ValueError(f"no experiment is called {name!r}: choose from {', '.join(experiment_names())}")
    text = resources.files("ddlcn.experiments").joinpath("paper", f"{name}.toml").read_text()
    return parse_experiment(name, _read_toml(name, text))


def parse_experiment(name: str, table: dict[str, Any]) -> Experiment:
    """Make an experiment from its TOML table."""
    entries = [*table.get("cells", []), *(cell for sweep in table.get("sweeps", []) for cell in _expand(name, sweep))]
    for needed, found in (("title", "title" in table), ("cells", entries)):
        if not found:
            raise ValueError(f"experiment {name!r} has no {needed!r}: see the files of ddlcn.experiments.paper")
    kind = table.get("kind", "table")
    check_choice("kind", kind, ("table", "curve", "contest"))
    shared, seeds = table.get("settings", {}), table.get("seeds", 10)
    cells = []
    for entry in entries:
        overrides = {key: value for key, value in entry.items() if key not in _CELL_KEYS}
        settings = Settings.from_table({**shared, **overrides})
        row, column = str(entry.get("row", "")), str(entry.get("column", ""))
        over = check_choice("over", entry.get("over", "images"), ("images", "classes"))
        published, bar = find_published(entry.get("published")), entry.get("bar")
        cells.append(Cell(row, column, settings, entry.get("seeds", seeds), published, bar, over))
    compare = tuple((pair["a"], pair["b"]) for pair in table.get("compare", []))
    return Experiment(name, table["title"], table.get("about", ""), kind, table.get("x", ""), tuple(cells), compare)


def _expand(name: str, sweep: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells of a sweep; the last setting of `each` varies fastest."""
    if not isinstance(sweep.get("each"), dict):
        raise ValueError(f"a sweep of experiment {name!r} has no table 'each' with the values of its settings")
    fixed = {key: value for key, value in sweep.items() if key != "each"}
    for values in product(*sweep["each"].values()):
        cell = {**fixed, **dict(zip(sweep["each"], values, strict=True))}
        for place in ("row", "column"):
            cell[place] = str(cell.get(place, "")).format(**cell)
        yield cell


def make_quick(experiment: Experiment) -> Experiment:
    """A version that takes a minute or two: a part of the data, one seed, small dictionaries. Not a result."""
    cells: dict[Settings, Cell] = {}
    for cell in experiment.cells:
        small = replace(
            cell.settings,
            quick=True,
            train_per_class=None if cell.settings.train_per_class is None else min(cell.settings.train_per_class, 5),
            atoms_per_class=min(cell.settings.atoms_per_class, 5),
            options=tuple(
                (name, min(value, 20) if name == "n_steps" else value) for name, value in cell.settings.options
            ),
        )
        cells.setdefault(small, replace(cell, settings=small, seeds=1, published=None, bar=None))
    step = -(-len(cells) // QUICK_CELLS)
    few = tuple(cells.values())[::step]
    return replace(experiment, title=f"{experiment.title} (quick look, not the result)", cells=few, compare=())


def leave_out_missing(experiment: Experiment) -> tuple[Experiment, dict[str, str]]:
    """Drop the cells of methods whose package is not installed; also returns {method: package}."""
    missing: dict[str, str] = {}
    kept = []
    for cell in experiment.cells:
        method, kind = cell.settings.method, dict(cell.settings.vectors).get("kind")
        package = "" if method == "DDLCN" else find_missing(method)
        if kind == "cnn" and not has_networks():
            package = "onnxruntime"
        if package:
            missing[method] = package
        else:
            kept.append(cell)
    return replace(experiment, cells=tuple(kept)), dict(sorted(missing.items()))


def _read_toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} is not a TOML file: {error}") from error

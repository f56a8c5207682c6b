"""The paper's tables and figures as data: one TOML file each, read into `Experiment`s.

name, title, about          what it is, in words
kind                        "table" (rows x columns) or "curve" (over the setting named by `x`)
seeds                       how many draws
[settings]                  what all cells share, as `Settings` names it
[[cells]]                   row, column: where it stands; anything else that is a setting of its own;
                            published: the paper's number, in per cent; bar: what we mean to reach; seeds;
                            over: which accuracy those are about, "images" (default) or "classes"
[[compare]]                 a, b: two columns (or two rows) to test against each other over the seeds, in pairs
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ddlcn._validation import check_choice
from ddlcn.experiments.settings import Settings

# In the order of the paper; what it does not have comes after, by name.
_ORDER = ("yaleb", "ar", "caltech101", "caltech256", "mnist")
# Cells of a quick look, spread over the table.
QUICK_CELLS = 12
_OF_A_CELL = ("row", "column", "published", "bar", "seeds", "over")


@dataclass(frozen=True)
class Cell:
    """One number of a table, or one point of a curve."""

    row: str
    column: str
    settings: Settings
    seeds: int
    published: float | None = None  # per cent; None: not given in the paper, or not at hand
    bar: float | None = None  # per cent
    over: str = "images"  # what the two are about: accuracy over all test "images", or the mean over "classes"


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
    """The experiments that there are: the paper's tables first."""
    files = resources.files("ddlcn.experiments").joinpath("paper").iterdir()
    names = sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))
    return (*_ORDER, *(name for name in names if name not in _ORDER))


def load_experiment(name: str) -> Experiment:
    """An experiment by its name, or by the path of a TOML file of one's own."""
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
    """An experiment from its TOML table."""
    for needed in ("title", "cells"):
        if needed not in table:
            raise ValueError(f"experiment {name!r} has no {needed!r}: see the files of ddlcn.experiments.paper")
    kind = table.get("kind", "table")
    check_choice("kind", kind, ("table", "curve"))
    shared, seeds = table.get("settings", {}), table.get("seeds", 10)
    cells = []
    for entry in table["cells"]:
        own = {key: value for key, value in entry.items() if key not in _OF_A_CELL}
        settings = Settings.from_table({**shared, **own})
        place = (str(entry.get("row", "")), str(entry.get("column", "")))
        over = check_choice("over", entry.get("over", "images"), ("images", "classes"))
        published, bar = entry.get("published"), entry.get("bar")
        cells.append(Cell(*place, settings, entry.get("seeds", seeds), published, bar, over))
    compare = tuple((pair["a"], pair["b"]) for pair in table.get("compare", []))
    return Experiment(name, table["title"], table.get("about", ""), kind, table.get("x", ""), tuple(cells), compare)


def make_quick(experiment: Experiment) -> Experiment:
    """The same path in a minute or two: a part of the data, one seed, small dictionaries. Its numbers are no result."""
    cells: dict[Settings, Cell] = {}
    for cell in experiment.cells:
        small = replace(
            cell.settings,
            quick=True,
            train_per_class=None if cell.settings.train_per_class is None else min(cell.settings.train_per_class, 5),
            atoms_per_class=min(cell.settings.atoms_per_class, 5),
        )
        cells.setdefault(small, replace(cell, settings=small, seeds=1, published=None, bar=None))
    step = -(-len(cells) // QUICK_CELLS)
    few = tuple(cells.values())[::step]
    return replace(experiment, title=f"{experiment.title} (quick look, not the result)", cells=few, compare=())


def _read_toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} is not a TOML file: {error}") from error

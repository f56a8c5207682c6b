"""What is wrong with labelled pictures, before somebody learns from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.classifier import DDLCNClassifier
from ddlcn.datasets.folder import ImageFolder
from ddlcn.datasets.quality_checks import find_duplicates, make_remarks
from ddlcn.datasets.shortcuts import Shortcut, find_shortcuts
from ddlcn.workflows.doubts import Doubt, hold_out_all

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Check:
    """What was found.

    Attributes
    ----------
    data : ImageFolder
    doubts : list of Doubt
        Pictures that look rather like another class, the surest first.
    shortcuts : list of Shortcut
    also_tested : list of (Path, Path)
        A picture, and a near-duplicate of it among the pictures for tests.
    n_asked : int
        Pictures that a model was asked about; not the only one of a class.
    remarks : list of str
        On near-duplicates, sizes of classes and of pictures.
    """

    data: ImageFolder
    doubts: list[Doubt]
    shortcuts: list[Shortcut]
    also_tested: list[tuple[Path, Path]]
    n_asked: int
    remarks: list[str]

    @property
    def summary(self) -> str:
        """How many pictures are in doubt, in words."""
        n_sure = sum(doubt.is_sure for doubt in self.doubts)
        if not self.n_asked:
            return "every class has a single picture: nothing can be said about wrong folders"
        return f"{n_sure} pictures are probably in the wrong folder, {len(self.doubts) - n_sure} more may be"

    def to_json(self) -> dict[str, Any]:
        """Everything, as dictionaries and lists."""
        paths, labels = self.data.paths, self.data.labels
        return {
            "pictures": len(paths),
            "classes": self.data.class_names,
            "doubts": [
                {
                    "path": str(paths[doubt.index]),
                    "label": str(labels[doubt.index]),
                    "looks_like": str(doubt.looks_like),
                    "probability": round(doubt.probability, 4),
                    "own_probability": round(doubt.own_probability, 4),
                    "sure": doubt.is_sure,
                }
                for doubt in self.doubts
            ],
            "shortcuts": [vars(shortcut) for shortcut in self.shortcuts],
            "also_tested": [[str(a), str(b)] for a, b in self.also_tested],
            "remarks": self.remarks,
            "left_out": [[str(path), reason] for path, reason in self.data.skipped],
        }


def check(
    model: DDLCNClassifier,
    data: ImageFolder,
    tested: ImageFolder | None = None,
    say: Callable[[str], None] = lambda _: None,
    show: bool = False,
) -> Check:
    """Look for mistakes in labelled pictures.

    Parameters
    ----------
    model : DDLCNClassifier
        Not fitted; it learns from two thirds of the pictures and is asked about the others, three times.
    data : ImageFolder
    tested : ImageFolder, optional
        Pictures that a model will be tested on.
    say : function of a line of text
    show : bool
        Whether to show progress.
    """
    groups = find_duplicates(data.thumbnails)
    remarks = make_remarks(data.paths, data.labels, groups)
    shortcuts = find_shortcuts(data.paths, data.labels, groups, model.n_jobs)
    held_out = hold_out_all(model, data.paths, data.labels, groups, say, show)
    also_tested = [] if tested is None else find_across(data, tested)
    n_asked = int(np.isfinite(held_out.margins).sum())
    return Check(data, held_out.list_doubts(), shortcuts, also_tested, n_asked, remarks)


def find_across(data: ImageFolder, tested: ImageFolder) -> list[tuple[Path, Path]]:
    """Pictures that have a near-duplicate among others, and the first of those."""
    n = len(data)
    groups = find_duplicates(np.concatenate([data.thumbnails, tested.thumbnails]))
    first: dict[int, int] = {}
    for place, group in enumerate(groups[n:].tolist()):
        first.setdefault(group, place)
    return [(data.paths[i], tested.paths[first[g]]) for i, g in enumerate(groups[:n].tolist()) if g in first]

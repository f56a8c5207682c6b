"""Omniglot: drawings of characters, 105 x 105, black ink; the 20 one-shot runs and two small background sets.

In: `all_runs.zip`, the folder `all_runs` or the folders `run01` ... `run20`; `images_background_small1.zip` and
`images_background_small2.zip`, or folders of these names. A run has 20 characters: one training drawing of each by one
person, one test drawing of each by another. Which test drawing shows which character is in its `class_labels.txt`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from ddlcn.datasets.archive import ArchiveMember, explain_damage, match_files
from ddlcn.datasets.catalogue import CATALOGUE
from ddlcn.datasets.dataset import Dataset, check_counts, make_dataset
from ddlcn.datasets.root import find_source

_RUN_FILE = re.compile(r"/((run\d\d)/(training/class\d\d\.png|test/item\d\d\.png|class_labels\.txt))$")
_DRAWING = re.compile(r"/([^/]+/character\d\d)/(\d{4}_\d\d\.png)$")
_BACKGROUND = ("images_background_small1", "images_background_small2")
_LABELS = "class_labels.txt"


def open_omniglot(root: Path | None = None) -> Dataset:
    """The 20 one-shot runs of Omniglot, read lazily: 20 training and 20 test drawings each.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `omniglot/`; None means `data_root()`.

    Returns
    -------
    dataset : Dataset
        Classes "run01/class01" to "run20/class20"; image names such as "run01/test/item01.png"; `runs` 0 to 19.

    Raises
    ------
    ValueError
        If a run has no `class_labels.txt`, or that names what is not there or leaves out a test drawing.
    """
    record = CATALOGUE["omniglot"]
    source = find_source(record, root)
    if source.name == "run01":  # unpacked without a folder around the runs
        source = source.parent
    files = {match[1]: file for match, file in match_files(source, _RUN_FILE)}
    classes: dict[str, str] = {}
    for run in sorted({name.split("/")[0] for name in files}):
        classes |= _list_classes(run, files, source)
    dataset = make_dataset(record, [(its_class, name, files[name]) for name, its_class in classes.items()])
    parts = [name.split("/") for name in dataset.image_names]
    dataset = replace(
        dataset,
        is_test=np.array([side == "test" for _, side, _ in parts]),
        runs=np.array([int(run.removeprefix("run")) - 1 for run, _, _ in parts], np.intp),
    )
    return check_counts(dataset, record, source)


def open_omniglot_background(root: Path | None = None) -> Dataset:
    """The small background sets of Omniglot, read lazily: 8 alphabets, 242 characters, 20 drawings of each.

    The alphabets Greek and Latin are in both archives, with the same drawings to the byte, and count once.

    Parameters
    ----------
    root : Path, optional
        Folder that holds `omniglot/`; None means `data_root()`.

    Returns
    -------
    dataset : Dataset
        Classes such as "Greek/character01"; image names such as "Greek/character01/0394_01.png".
    """
    record = CATALOGUE["omniglot-background"]
    sources = [find_source(record, root, part) for part in _BACKGROUND]
    found = {f"{match[1]}/{match[2]}": file for source in sources for match, file in match_files(source, _DRAWING)}
    dataset = make_dataset(record, [(name.rsplit("/", 1)[0], name, file) for name, file in found.items()])
    return check_counts(dataset, record, " and ".join(map(str, sources)))


def _list_classes(run: str, files: dict[str, Path | ArchiveMember], source: Path) -> dict[str, str]:
    """Name and class of every drawing of a run; `files` are those of all runs, by name."""
    labels = f"{run}/{_LABELS}"
    if labels not in files:
        raise ValueError(f"{source} holds no {labels}, which says what the test drawings show: get it again")
    training = {name: f"{run}/{Path(name).stem}" for name in files if name.startswith(f"{run}/training/")}
    unnamed = {name for name in files if name.startswith(f"{run}/test/")}
    classes = dict(training)
    with explain_damage(source):
        lines = files[labels].read_bytes().decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        names = line.split()
        if not names:
            continue
        if len(names) != 2 or names[0] not in unnamed or names[1] not in training:
            raise ValueError(
                f"{source}, {labels}, line {number}, {line!r}, does not name a test drawing, each once, and the "
                f"training drawing of its class, both in the folder of the run: get it again"
            )
        unnamed.remove(names[0])
        classes[names[0]] = training[names[1]]
    if unnamed:
        raise ValueError(f"{source}, {labels}, does not say what {min(unnamed)} shows: get it again")
    return classes

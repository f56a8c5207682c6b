"""What a run measures: accuracy and time of a fitted classifier, or what each layer does.

In: a trial (images, labels, split) and a fitted classifier. Out: the row with its numbers filled in.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn import __version__
from ddlcn.classifier import DDLCNClassifier
from ddlcn.datasets import Dataset
from ddlcn.descriptors import describe
from ddlcn.encoder import DDLCNEncoder
from ddlcn.engines.compile import clock
from ddlcn.experiments.layers import measure_layers
from ddlcn.experiments.memory import peak_memory_mb
from ddlcn.experiments.protocol import Split
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.images import NamedImage, read_image
from ddlcn.model_selection.metrics import balanced_accuracy, count_confusions
from ddlcn.utils.threads import count_threads

# Test images on which the time per image is measured, decoded beforehand.
N_TIMED = 64
# Test images whose descriptors are reconstructed.
N_RECONSTRUCTED = 50
# Test images by which layers are judged.
N_BY_LAYER = 1000


@dataclass(frozen=True)
class Trial:
    """The images of one run, and how they are split."""

    items: Sequence[NamedImage]
    labels: NDArray[np.intp]
    split: Split
    n_jobs: int | None

    def take_test(self, n: int | None = None) -> list[NamedImage]:
        """The test images, or about n of them, evenly spread."""
        test = self.split.test
        chosen = test if n is None else test[:: max(1, len(test) // n)][:n]
        return [self.items[i] for i in chosen.tolist()]


def start_row(settings: Settings, seed: int, split: Split, data: Dataset) -> Row:
    """A row with everything but what is measured."""
    return Row(
        settings, seed, n_train=len(split.train), note=split.note, class_names=list(data.class_names),
        data=data.identity, versions=_list_versions(), machine=_describe_machine(),
    )  # fmt: skip


def fill_in_accuracy(row: Row, trial: Trial, model: DDLCNClassifier) -> Row:
    """Both accuracies, confusions, and the time per image."""
    y_pred = model.predict(trial.take_test())
    row = note_accuracy(row, trial.labels[trial.split.test], y_pred, len(model.classes_))
    return fill_in_times(note_joint(row, model), trial, model)


def fill_in_times(row: Row, trial: Trial, model: DDLCNClassifier) -> Row:
    """Seconds per image in one thread: the whole pipeline, without the descriptors, the classifier alone."""
    sift = model.branches_[0].descriptors
    few = [
        NamedImage(item.name, read_image(item.image, max_side=sift.max_side, name=item.name))
        for item in trial.take_test(N_TIMED)
    ]
    begin = clock()
    features = model.encoding.transform(few, n_jobs=1)
    encoded = clock()
    model.linear_svm_.decide(features)
    decided = clock()
    for branch in model.branches_:
        for item in few:
            describe(branch.descriptors, item)
    described = clock() - decided
    return replace(
        row, seconds_to_classify=(decided - encoded) / len(few), seconds_per_image=(decided - begin) / len(few),
        seconds_to_code=max(decided - begin - described, decided - encoded) / len(few),
        peak_memory_mb=peak_memory_mb(), finished=now(),
    )  # fmt: skip


def fill_in_approximation(row: Row, trial: Trial, model: DDLCNEncoder) -> Row:
    """Relative error ||x - y^(l)||^2 / ||x||^2 of each layer's approximation, over descriptors of test images."""
    chosen = trial.take_test(N_RECONSTRUCTED)
    squares, total = np.zeros(len(model.dictionaries_)), 0.0
    for item, layers in zip(chosen, model.reconstruct(chosen), strict=True):
        X = describe(model.branches_[0].descriptors, item).values.astype(np.float64)
        total += float((X**2).sum())
        squares += [float(((X - layer) ** 2).sum()) for layer in layers]
    return replace(row, errors=(squares / total).tolist(), finished=now())


def fill_in_layers(row: Row, trial: Trial, model: DDLCNEncoder, may_show: bool) -> Row:
    """What each layer is like, on test images."""
    test = trial.split.test
    chosen = test[np.linspace(0, len(test) - 1, min(len(test), N_BY_LAYER)).round().astype(np.intp)]
    items = [trial.items[i] for i in chosen.tolist()]
    layers = measure_layers(model, items, trial.labels[chosen], may_show, trial.n_jobs)
    return replace(row, layers=layers, finished=now())


def note_accuracy(row: Row, y_true: NDArray[np.intp], y_pred: NDArray[np.intp], n_classes: int) -> Row:
    """Both accuracies, and what was predicted as what."""
    confusion = count_confusions(y_true, y_pred, n_classes)
    wrong = [[int(a), int(b), int(confusion[a, b])] for a, b in np.argwhere(confusion) if a != b]
    return replace(
        row, accuracy=float(np.mean(y_true == y_pred)), balanced_accuracy=balanced_accuracy(y_true, y_pred),
        mistakes=wrong, class_totals=confusion.sum(axis=1).tolist(),
    )  # fmt: skip


def note_joint(row: Row, model: Any) -> Row:
    """What joint training did, or why it did nothing; a model that knows none leaves the row as it is."""
    card = getattr(model, "card_", {})
    if "joint" not in card:
        return row
    if not card["joint_epochs"]:
        return replace(row, note="; ".join(filter(None, [row.note, card["joint"]])))
    return replace(row, epochs=card["joint_epochs"], atoms=card["joint_atoms"])


def now() -> str:
    """The time of day, as rows have it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _list_versions() -> str:
    import numba
    import scipy
    import sklearn

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    others = ", ".join(f"{name} {module.__version__}" for name, module in packages.items())
    return f"ddlcn {__version__}, Python {platform.python_version()}, {others}"


def _describe_machine() -> str:
    """What it runs on; a process that is held to some of the cores says so."""
    cores, used = os.cpu_count() or 1, count_threads(None)
    return f"{platform.system()} {platform.machine()}, {cores if used == cores else f'{used} of {cores}'} cores"

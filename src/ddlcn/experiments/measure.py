"""What a run measures: accuracy and time of a trained classifier, or the error of each layer's approximation.

In: a trial (images, labels, split) and a network. Out: the row with its numbers filled in.
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
from ddlcn._threads import count_threads
from ddlcn.coding.tangents import TangentModel
from ddlcn.datasets import Dataset
from ddlcn.engines.compile import clock
from ddlcn.experiments.memory import peak_memory_mb
from ddlcn.experiments.protocol import Split, accuracies
from ddlcn.experiments.settings import Settings
from ddlcn.experiments.store import Row
from ddlcn.features import DenseSIFT
from ddlcn.features.images import read_image
from ddlcn.network import ForwardPass, ImageFeatures, Network
from ddlcn.svm import SVMSettings, fit_svm, gram_matrix, prefer_gram, train

Array = NDArray[Any]

# Test images on which the time per image is measured, decoded beforehand.
N_TIMED = 64
# Test images whose descriptors are reconstructed.
N_RECONSTRUCTED = 50


@dataclass(frozen=True)
class Trial:
    """The images of one run, and how they are split."""

    named: Sequence[tuple[str, Any]]
    features: DenseSIFT
    labels: NDArray[np.intp]
    split: Split
    begin: float  # clock() when the run began
    n_jobs: int | None

    def take(self, chosen: NDArray[np.intp]) -> list[tuple[str, Any]]:
        """Some of the images."""
        return [self.named[i] for i in chosen.tolist()]


def start_row(settings: Settings, seed: int, split: Split, data: Dataset) -> Row:
    """A row with everything but what is measured."""
    return Row(
        settings, seed, n_train=len(split.train), note=split.note, class_names=list(data.class_names),
        data=data.identity, versions=_versions(), machine=_machine(),
    )  # fmt: skip


def make_features(settings: Settings) -> DenseSIFT:
    """The descriptors that settings describe."""
    return DenseSIFT(
        patch_size=settings.patch_size if len(settings.patch_size) > 1 else settings.patch_size[0],
        step=settings.step,
        max_side=settings.max_side,
        min_side=settings.min_side or None,
        border=settings.border,
    )


def make_network(
    settings: Settings, dictionaries: Sequence[Array], features: DenseSIFT, tangents: TangentModel | None = None
) -> Network:
    """The network that settings describe."""
    n = settings.n_layers
    weights = settings.layer_weights[:n] or None
    how = (settings.depth, weights, features, *settings.list_coding(n), settings.pyramid, settings.pool_power, "auto")
    return Network(dictionaries, *how, tangents=tangents)


def judge_held(row: Row, trial: Trial, forward: ForwardPass, F: Any) -> Row:
    """Train on the training rows of F (all images, columns), test on the test rows."""
    which, y = _which_svm(row, trial)
    train_rows = F[trial.split.train]
    gram = gram_matrix(train_rows) if prefer_gram(len(y), train_rows.nnz, which.n_classes) else None
    machine = fit_svm(train_rows, gram, y, which, trial.n_jobs)
    fitted = clock()
    del train_rows, gram
    decisions = machine.decide(F[trial.split.test])
    return _fill_in(row, trial, forward, decisions, fitted, clock() - fitted)


def judge_streamed(row: Row, trial: Trial, network: Network) -> Row:
    """Train and test without holding the features of all images."""
    which, y = _which_svm(row, trial)
    source = ImageFeatures(network, trial.take(trial.split.train), trial.n_jobs, show=False)
    machine = train(source, y, which, trial.n_jobs).machine
    fitted = clock()
    decisions, spent = [], 0.0
    for block in network.iter_features(trial.take(trial.split.test), trial.n_jobs):
        begin = clock()
        decisions.append(machine.decide(block))
        spent += clock() - begin
    return _fill_in(row, trial, network, np.concatenate(decisions), fitted, spent)


def measure_approximation(row: Row, trial: Trial, dictionaries: Sequence[Array]) -> Row:
    """Relative error ||x - y^(l)||^2 / ||x||^2 of each layer's approximation, over descriptors of test images."""
    network = make_network(row.settings, dictionaries, trial.features)
    test = trial.split.test
    chosen = trial.take(test[:: max(1, len(test) // N_RECONSTRUCTED)][:N_RECONSTRUCTED])
    squares, total = np.zeros(len(dictionaries)), 0.0
    for (_, image), layers in zip(chosen, network.reconstruct(chosen, trial.n_jobs), strict=True):
        X = trial.features.transform([image])[0].values.astype(np.float64)
        total += float((X**2).sum())
        squares += [float(((X - layer) ** 2).sum()) for layer in layers]
    return replace(row, errors=(squares / total).tolist(), finished=now())


def _which_svm(row: Row, trial: Trial) -> tuple[SVMSettings, NDArray[np.intp]]:
    n_classes = int(trial.labels.max()) + 1
    settings = SVMSettings(n_classes, row.settings.C, "liblinear", np.ones(n_classes))
    return settings, trial.labels[trial.split.train]


def _fill_in(row: Row, trial: Trial, forward: ForwardPass, decisions: Array, fitted: float, spent: float) -> Row:
    """Both accuracies, both times."""
    truth = trial.labels[trial.split.test]
    winners = (decisions > 0).astype(np.intp) if decisions.ndim == 1 else decisions.argmax(axis=1)
    classify = spent / len(truth)
    return replace(
        note_accuracy(row, truth, winners, int(trial.labels.max()) + 1), seconds_to_classify=classify,
        seconds_per_image=classify + _time_features(forward, trial), fit_seconds=fitted - trial.begin,
        peak_memory_mb=peak_memory_mb(), finished=now(),
    )  # fmt: skip


def note_accuracy(row: Row, truth: NDArray[np.intp], winners: NDArray[np.intp], n_classes: int) -> Row:
    """Both accuracies, and who was taken for whom."""
    confusion = np.zeros((n_classes, n_classes), np.int64)
    np.add.at(confusion, (truth, winners), 1)
    overall, by_class = accuracies(confusion)
    wrong = [[int(a), int(b), int(confusion[a, b])] for a, b in np.argwhere(confusion) if a != b]
    totals = confusion.sum(axis=1).tolist()
    return replace(row, accuracy=overall, mean_over_classes=by_class, mistakes=wrong, class_totals=totals)


def _time_features(forward: ForwardPass, trial: Trial) -> float:
    """Seconds per image from decoded pixels to the feature, one thread."""
    test = trial.split.test
    chosen = trial.take(test[:: max(1, len(test) // N_TIMED)][:N_TIMED])
    decoded = [(name, read_image(image, max_side=trial.features.max_side, name=name)) for name, image in chosen]
    begin = clock()
    forward.transform(decoded, n_jobs=1)
    return (clock() - begin) / len(decoded)


def now() -> str:
    """The time of day, as rows have it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _versions() -> str:
    import numba
    import scipy
    import sklearn

    packages = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    others = ", ".join(f"{name} {module.__version__}" for name, module in packages.items())
    return f"ddlcn {__version__}, Python {platform.python_version()}, {others}"


def _machine() -> str:
    """What it runs on; a process that is held to some of the cores says so."""
    cores, used = os.cpu_count() or 1, count_threads(None)
    return f"{platform.system()} {platform.machine()}, {cores if used == cores else f'{used} of {cores}'} cores"

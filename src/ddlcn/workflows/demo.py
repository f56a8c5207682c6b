"""`ddlcn demo`: what the method does, on data that is already there.

The handwritten digits that scikit-learn ships (8 x 8 pixels, no download), ten training images per class, five draws:
DDLCN against an RBF SVM and a linear SVM on raw pixels, same splits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

IMAGES_PER_CLASS = 10


@dataclass(frozen=True)
class DemoRow:
    """One method on one draw."""

    method: str
    seed: int
    accuracy: float
    seconds: float


def make_models(seed: int) -> dict[str, Callable[[], Any]]:
    """The methods, by name. Those on pixels get flat vectors through a pipeline."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import SVC, LinearSVC

    from ddlcn import DDLCNClassifier, DenseSIFT

    def on_pixels(machine: Any) -> Any:
        return make_pipeline(FunctionTransformer(_flatten), machine)

    # Digits of 8 x 8 are enlarged four times; a patch then covers 3 x 3 of the original pixels.
    features = DenseSIFT(patch_size=12, step=3, min_side=32)
    return {
        "DDLCN": lambda: DDLCNClassifier(features=features, random_state=seed),
        "RBF SVM on pixels": lambda: on_pixels(SVC(C=10.0)),
        "linear SVM on pixels": lambda: on_pixels(LinearSVC(C=1.0)),
    }


def run_demo(n_seeds: int = 5) -> Iterator[DemoRow]:
    """Yield a row per method and draw, as they are finished."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedShuffleSplit

    digits = load_digits()
    images, labels = digits.images / 16.0, digits.target  # (1797, 8, 8) in [0, 1]
    n_train = IMAGES_PER_CLASS * len(digits.target_names)
    for seed in range(n_seeds):
        split = StratifiedShuffleSplit(1, train_size=n_train, random_state=seed)
        train, test = next(split.split(images, labels))
        for name, make in make_models(seed).items():
            begin = time.perf_counter()
            accuracy = make().fit(images[train], labels[train]).score(images[test], labels[test])
            yield DemoRow(name, seed, float(accuracy), time.perf_counter() - begin)


def summarise(rows: list[DemoRow]) -> list[tuple[str, float, float, float]]:
    """Per method: mean accuracy, standard deviation, mean seconds; best first."""
    summary = []
    for method in dict.fromkeys(row.method for row in rows):
        accuracies = [row.accuracy for row in rows if row.method == method]
        seconds = [row.seconds for row in rows if row.method == method]
        deviation = float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else 0.0
        summary.append((method, float(np.mean(accuracies)), deviation, float(np.mean(seconds))))
    return sorted(summary, key=lambda row: -row[1])


def _flatten(images: Any) -> Any:
    return np.asarray(images).reshape(len(images), -1)

"""The two accuracy bars: `python -m benchmarks.recognition mnist` or `yaleb`.

MNIST: 60,000 training images, 100 atoms per class learned from 100 images per class, two layers; at least 98.6% of the
test images, in less than 15 minutes on two cores. Extended Yale B: 32 training images per person, 15 atoms per person
learned from those images only (no test image has been seen), three seeds; at least 98.8% on average.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.data import point_to_shared_data
from benchmarks.memory import memory_peak, verdict
from ddlcn import DDLCNClassifier
from ddlcn.datasets import load_mnist, load_yaleb

Array = NDArray[Any]
MNIST_BAR, MNIST_MINUTES = 98.6, 15.0
YALEB_BAR = 98.8
TRAINING_PER_PERSON = 32


@dataclass(frozen=True)
class Score:
    """Percent over all test images and as a mean over classes, and seconds."""

    accuracy: float
    class_mean: float
    fit_seconds: float
    predict_seconds: float

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.2f} over all test images, {self.class_mean:.2f} mean over classes; "
            f"fit {self.fit_seconds:.0f} s, predict {self.predict_seconds:.0f} s"
        )


def score(model: DDLCNClassifier, train: tuple[Array, Array], test: tuple[Array, Array]) -> Score:
    """Fit on one pair of images and labels, judge on the other."""
    start = time.perf_counter()
    model.fit(*train)
    fitted = time.perf_counter()
    hits = model.predict(test[0]) == test[1]
    done = time.perf_counter()
    class_mean = np.mean([hits[test[1] == label].mean() for label in np.unique(test[1])])
    return Score(100 * float(hits.mean()), 100 * float(class_mean), fitted - start, done - fitted)


def run_mnist(console: Console, quick: bool, verbose: int) -> bool:
    """Whether the bars are met."""
    start = time.perf_counter()
    train_images, train_labels, test_images, test_labels = load_mnist()
    model = DDLCNClassifier(n_layers=2, atoms_per_class=100, dictionary_images=100, random_state=0, verbose=verbose)
    if quick:
        train_images, train_labels = train_images[:2000], train_labels[:2000]
        test_images, test_labels = test_images[:500], test_labels[:500]
        model.set_params(atoms_per_class=20, dictionary_images=20)
    result = score(model, (train_images, train_labels), (test_images, test_labels))
    minutes = (time.perf_counter() - start) / 60
    console.print(f"MNIST, {len(train_labels):,} training images, {len(test_labels):,} test images: {result}")
    right, fast = result.accuracy >= MNIST_BAR, minutes < MNIST_MINUTES
    console.print(f"accuracy {result.accuracy:.2f} >= {MNIST_BAR}: {verdict(right)}")
    console.print(f"the whole run, reading included, {minutes:.1f} < {MNIST_MINUTES:g} minutes: {verdict(fast)}")
    return right and fast


def run_yaleb(console: Console, quick: bool, verbose: int) -> bool:
    """Whether the bar is met."""
    images, people = load_yaleb()
    n_seeds = 3
    if quick:
        few = np.isin(people, np.unique(people)[:5])
        images, people, n_seeds = images[few], people[few], 1
    results = []
    for seed in range(n_seeds):
        train, test = split(people, TRAINING_PER_PERSON, seed)
        model = DDLCNClassifier(n_layers=2, atoms_per_class=15, random_state=seed, verbose=verbose)
        results.append(score(model, (images[train], people[train]), (images[test], people[test])))
        console.print(f"Extended Yale B, {TRAINING_PER_PERSON} per person, seed {seed}: {results[-1]}")
    mean = float(np.mean([result.accuracy for result in results]))
    class_mean = float(np.mean([result.class_mean for result in results]))
    console.print(f"mean over classes, {n_seeds} seeds: {class_mean:.2f}")
    console.print(f"accuracy, {n_seeds} seeds: {mean:.2f} >= {YALEB_BAR}: {verdict(mean >= YALEB_BAR)}")
    return mean >= YALEB_BAR


def split(labels: Array, per_class: int, seed: int) -> tuple[Array, Array]:
    """Indices of `per_class` random training items of every class, and of the others."""
    rng = np.random.default_rng(seed)
    parts = [rng.choice(np.flatnonzero(labels == label), per_class, replace=False) for label in np.unique(labels)]
    train = np.sort(np.concatenate(parts))
    return train, np.setdiff1d(np.arange(len(labels)), train)


RUNS: dict[str, Callable[[Console, bool, int], bool]] = {"mnist": run_mnist, "yaleb": run_yaleb}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recognition", description=__doc__)
    parser.add_argument("dataset", choices=sorted(RUNS))
    parser.add_argument("--quick", action="store_true", help="a small part of the data: shows only that it runs")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--verbose", action="store_true", help="show progress")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    point_to_shared_data()
    if options.quick:
        console.print("--quick: a small part of the data, the bars are not for it")
    try:
        met = RUNS[options.dataset](console, options.quick, int(options.verbose))
    except FileNotFoundError as error:
        console.print(f"nothing measured: {error}")
        return 0
    console.print(f"peak memory of the process {memory_peak() / 1e9:.2f} GB")
    return 1 if options.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())

"""Is this the right method for my pictures, and would more labels help? Learning curves of several methods.

Every method sees the same draws: t images of every class to learn from, the others (no near-duplicates of those) to be
tested.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin

from ddlcn._threads import map_threads
from ddlcn.features import read_image
from ddlcn.training import plan_splits

Array = NDArray[Any]

# Images per class to learn from, as far as there are so many.
COUNTS = (1, 2, 5, 10, 20, 50, 100)
N_DRAWS = 3
# Images tested per draw, at most.
MAX_TESTED = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Outcome:
    """One method, one draw."""

    method: str
    n_per_class: int
    draw: int
    accuracy: float
    n_tested: int
    fit_seconds: float
    seconds_per_image: float
    n_bytes: int


@dataclass(frozen=True)
class Point:
    """One method at one number of images: mean over draws, its 95 % interval (Student's), and draw by draw."""

    n_per_class: int
    accuracy: float
    low: float
    high: float
    fit_seconds: float
    seconds_per_image: float
    n_bytes: int
    draws: tuple[float, ...] = ()


class Pixels(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Images as what they are: grey values of a thumbnail, side by side, without their mean and of length one."""

    def __init__(self, side: int = 32) -> None:
        self.side = side

    def fit(self, images: Any, y: Any = None) -> Pixels:
        return self

    def transform(self, images: Any) -> Array:
        rows = np.stack(list(map_threads(self._flatten, images)))
        rows -= rows.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-6))

    def _flatten(self, image: Any) -> Array:
        picture = Image.fromarray(read_image(image, max_side=8 * self.side))
        return np.asarray(picture.resize((self.side, self.side), Image.Resampling.BOX), np.float64).ravel()


def make_methods(names: Sequence[str] | None = None) -> dict[str, Callable[[int], Any]]:
    """Methods by name: functions of a seed that return an estimator of images."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC, LinearSVC

    from ddlcn.classifier import DDLCNClassifier

    methods: dict[str, Callable[[int], Any]] = {
        "ddlcn fast": lambda seed: DDLCNClassifier.preset("fast", random_state=seed),
        "ddlcn accurate": lambda seed: DDLCNClassifier.preset("accurate", random_state=seed),
        "RBF SVM on pixels": lambda seed: make_pipeline(Pixels(), SVC(C=10.0)),
        "linear SVM on pixels": lambda seed: make_pipeline(Pixels(), LinearSVC(C=1.0, random_state=seed)),
        "nearest neighbour on pixels": lambda seed: make_pipeline(Pixels(), KNeighborsClassifier(1)),
    }
    if names is None:
        return methods
    unknown = [name for name in names if name not in methods]
    if unknown:
        raise ValueError(f"method {unknown[0]!r} is not known: choose from {', '.join(methods)}")
    return {name: methods[name] for name in names}


def list_counts(labels: Array, groups: NDArray[np.intp]) -> list[int]:
    """The numbers of images per class that leave images of every class to be tested."""
    smallest = min(len(set(groups[labels == c].tolist())) for c in np.unique(labels))
    return [n for n in COUNTS if n < smallest]


def compare(
    methods: dict[str, Callable[[int], Any]],
    paths: Sequence[Any],
    labels: Array,
    groups: NDArray[np.intp],
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Iterator[Outcome]:
    """Yield outcomes, few images first.

    Parameters
    ----------
    methods : dict of functions of a seed
        From `make_methods`.
    paths : sequence of n images; labels, groups : ndarrays (n,)
        Images of one group (near-duplicates) are never on both sides.
    """
    counts = list_counts(labels, groups)
    if not counts:
        raise ValueError("a class has a single picture: nothing could be held out to compare methods on")
    for n_per_class in counts:
        for draw in range(n_draws):
            (split,), _ = plan_splits(labels, groups, n_per_class, True, seed + draw)
            test = np.random.default_rng(seed + draw).permutation(split.test)[:MAX_TESTED]
            learn, judge = [paths[i] for i in split.train], [paths[i] for i in test]
            for name, make in methods.items():
                begin = time.perf_counter()
                model = make(seed + draw).fit(learn, labels[split.train])
                fitted = time.perf_counter()
                accuracy = float(np.mean(model.predict(judge) == labels[test]))
                per_image = (time.perf_counter() - fitted) / len(test)
                yield Outcome(name, n_per_class, draw, accuracy, len(test), fitted - begin, per_image, _measure(model))


def _measure(model: Any) -> int:
    """Bytes that a fitted model needs to predict."""
    if hasattr(model, "dictionaries_"):
        tangents = [] if model.tangents_ is None else [np.asarray(part) for part in vars(model.tangents_).values()]
        return sum(array.nbytes for array in [model.coef_, *model.dictionaries_, *tangents])
    return len(pickle.dumps(model))


def summarise(outcomes: Sequence[Outcome]) -> dict[str, list[Point]]:
    """A learning curve per method."""
    curves: dict[str, list[Point]] = {}
    for method, n in dict.fromkeys((o.method, o.n_per_class) for o in outcomes):
        own = [o for o in outcomes if (o.method, o.n_per_class) == (method, n)]
        values = np.array([o.accuracy for o in own])
        mean, half = float(values.mean()), _half_interval(values)
        fit, each = (float(np.mean([getattr(o, f) for o in own])) for f in ("fit_seconds", "seconds_per_image"))
        point = Point(n, mean, max(0.0, mean - half), min(1.0, mean + half), fit, each, own[-1].n_bytes, tuple(values))
        curves.setdefault(method, []).append(point)
    return curves


def _half_interval(values: Array) -> float:
    """Half the width of the interval of a mean; 0 for a single value, which tells nothing about it."""
    if len(values) < 2:
        return 0.0
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def conclude(curves: dict[str, list[Point]]) -> list[str]:
    """Two sentences: which method, and whether more labels would help."""
    last = {method: points[-1] for method, points in curves.items()}
    best = max(last, key=lambda method: last[method].accuracy)
    second = max((method for method in last if method != best), key=lambda m: last[m].accuracy, default=None)
    winner = f"With {last[best].n_per_class} images per class {best} is best: {100 * last[best].accuracy:.1f} %"
    if second is not None:
        gap = 100 * (last[best].accuracy - last[second].accuracy)
        differences = np.array(last[best].draws) - np.array(last[second].draws)  # the draws are the same for both
        sure = len(differences) > 1 and differences.mean() > _half_interval(differences)
        winner += f", {gap:.1f} points above {second}{'' if sure else ' (within the uncertainty of these draws)'}"
    sentences = [f"{winner}."]
    if len(curves[best]) > 1:
        before, now = curves[best][-2:]
        gain = 100 * (now.accuracy - before.accuracy)
        step = f"from {before.n_per_class} to {now.n_per_class} per class it gained {gain:.1f} points."
        if now.accuracy > 0.99:
            sentences.append("More labels can hardly help: nearly everything is recognised.")
        else:
            sentences.append(f"More labels would help{'' if gain > 1 else ' little'}: {step}")
    return sentences

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

from ddlcn.baselines.inputs import FILES, INPUTS
from ddlcn.baselines.registry import find_method, make_method
from ddlcn.classifier import DDLCNClassifier
from ddlcn.model_selection.splits import count_fewest_groups, plan_splits
from ddlcn.presets import get_preset
from ddlcn.utils.statistics import half_interval
from ddlcn.utils.time_limit import OverBudget, limit_time
from ddlcn.utils.validation import check_choice

Array = NDArray[Any]

# Images per class to learn from, as far as every class has more.
COUNTS = (1, 2, 5, 10, 20, 50, 100)
N_DRAWS = 3
# Images tested per draw, at most.
MAX_TESTED = 1000
# Seconds that a method may learn; one that needs more is left out from there on.
BUDGET = 600.0


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
class LeftOut:
    """A method that did not learn from this number of images: it took too long, or cannot use these pictures."""

    method: str
    n_per_class: int
    reason: str


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
    n_tested: int = 0  # images per draw


def make_methods(names: Sequence[str], vectors: str = "pixels") -> dict[str, Callable[[int], Any]]:
    """Methods by name: functions of a seed that return an estimator of images.

    Parameters
    ----------
    names : sequence of str
        Of `ddlcn.baselines.registry`.
    vectors : str
        How an image becomes a vector (`ddlcn.baselines.inputs`, or a file of vectors), for methods that work on those.
    """
    if not vectors.endswith(FILES):
        check_choice("vectors", vectors, INPUTS)

    def prepare(name: str) -> Callable[[int], Any]:
        method = find_method(name)
        own: dict[str, Any] = {}
        if method.works_on == "vectors":
            own["features"] = vectors
        elif method.works_on == "descriptors" and method.made_by != "DDLCN":
            own["features"] = get_preset("fast")["features"]  # the same descriptors as ours
        return lambda seed: make_method(name, seed, **own)

    return {name: prepare(name) for name in names}


def list_counts(labels: Array, groups: NDArray[np.intp]) -> list[int]:
    """The numbers of images per class that leave images of every class to be tested."""
    return [n for n in COUNTS if n < count_fewest_groups(labels, groups)]


def compare(
    methods: dict[str, Callable[[int], Any]],
    paths: Sequence[Any],
    labels: Array,
    groups: NDArray[np.intp],
    n_draws: int = N_DRAWS,
    seed: int = 0,
    budget: float = BUDGET,
) -> Iterator[Outcome | LeftOut]:
    """Yield outcomes, few images first.

    Parameters
    ----------
    methods : dict of functions of a seed
        From `make_methods`.
    paths : sequence of n images; labels, groups : ndarrays (n,)
        Images of one group (near-duplicates) are never on both sides.
    budget : float
        Seconds: a method that needs more to learn is not asked again, since more images would take longer still. Nor
        is one that says that it cannot do with these pictures; the others go on.
    """
    given_up: dict[str, str] = {}
    counts = list_counts(labels, groups)
    if not counts:
        raise ValueError("a class has a single picture: nothing could be held out to compare methods on")
    for n_per_class in counts:
        for draw in range(n_draws):
            (split,), _ = plan_splits(labels, groups, n_per_class, True, seed + draw)
            test = np.random.default_rng(seed + draw).permutation(split.test)[:MAX_TESTED]
            train_images, test_images = [paths[i] for i in split.train], [paths[i] for i in test]
            for name, make in methods.items():
                if name not in given_up:
                    begin = time.perf_counter()
                    try:
                        with limit_time(budget):
                            model = make(seed + draw).fit(train_images, labels[split.train])
                        fitted = time.perf_counter()
                        accuracy = float(np.mean(model.predict(test_images) == labels[test]))
                    except OverBudget:
                        given_up[name] = "over budget"
                    except ValueError as error:
                        given_up[name] = str(error)
                if name in given_up:
                    yield LeftOut(name, n_per_class, given_up[name])
                    continue
                times = (fitted - begin, (time.perf_counter() - fitted) / len(test))
                yield Outcome(name, n_per_class, draw, accuracy, len(test), *times, measure_size(model))


def measure_size(model: Any) -> int:
    """Bytes that a fitted model needs to predict."""
    if isinstance(model, DDLCNClassifier):  # which can be pickled with much more: kept features, patches
        first_order = (
            [] if model.first_order_ is None else [np.asarray(part) for part in vars(model.first_order_).values()]
        )
        return sum(array.nbytes for array in [model.coef_, *model.dictionaries_, *first_order])
    return len(pickle.dumps(model))


def summarise(outcomes: Sequence[Outcome | LeftOut]) -> dict[str, list[Point]]:
    """A learning curve per method, as far as it came."""
    curves: dict[str, list[Point]] = {o.method: [] for o in outcomes}
    late = {(o.method, o.n_per_class) for o in outcomes if isinstance(o, LeftOut)}
    done = [o for o in outcomes if isinstance(o, Outcome) and (o.method, o.n_per_class) not in late]
    for method, n in dict.fromkeys((o.method, o.n_per_class) for o in done):
        own = [o for o in done if (o.method, o.n_per_class) == (method, n)]
        values = np.array([o.accuracy for o in own])
        mean, half = float(values.mean()), _find_half(values)
        fit, each = (float(np.mean([getattr(o, f) for o in own])) for f in ("fit_seconds", "seconds_per_image"))
        point = Point(
            n, mean, max(0.0, mean - half), min(1.0, mean + half), fit, each, own[-1].n_bytes, tuple(values),
            min(o.n_tested for o in own),
        )  # fmt: skip
        curves[method].append(point)
    return curves


def _find_half(values: Array) -> float:
    return half_interval(float(values.std(ddof=1)) if len(values) > 1 else None, len(values))


def conclude(curves: dict[str, list[Point]]) -> list[str]:
    """Two sentences: which method, and whether more labels would help."""
    most = max((points[-1].n_per_class for points in curves.values() if points), default=0)
    last = {method: points[-1] for method, points in curves.items() if points and points[-1].n_per_class == most}
    if not last:
        return ["No method learned anything."]
    best = max(last, key=lambda method: last[method].accuracy)
    second = max((method for method in last if method != best), key=lambda m: last[m].accuracy, default=None)
    winner = f"With {most} images per class {best} is best: {100 * last[best].accuracy:.1f} %"
    if second is not None and _is_sure(last[best], last[second]):
        winner += f", {100 * (last[best].accuracy - last[second].accuracy):.1f} points above {second}"
    elif second is not None:
        shares = f"{100 * last[best].accuracy:.1f} %, {second} {100 * last[second].accuracy:.1f} %"
        winner = f"With {most} images per class {best} has {shares}: these draws cannot tell which is better"
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


def _is_sure(best: Point, second: Point) -> bool:
    """Whether one is better than the other by more than chance: in the mean over draws (paired, 95 %), or in every one
    of them by more than so few tested images could show.
    """
    differences = np.array(best.draws) - np.array(second.draws)  # the draws are the same for both
    if len(differences) > 1 and differences.mean() > _find_half(differences):
        return True
    if best.n_tested == 0 or len(differences) == 0:
        return False
    variances = [np.array(each.draws) * (1.0 - np.array(each.draws)) for each in (best, second)]
    # One image more or less on each side: also where an accuracy is 0 or 1.
    half = 1.96 * np.sqrt(sum(variances) / best.n_tested) + 1.0 / best.n_tested
    return bool((differences > half).all())

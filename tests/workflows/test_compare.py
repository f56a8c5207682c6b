"""Comparing methods: the same draws for all, nothing leaks, the sentences follow from the numbers."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest

from ddlcn.workflows.compare import LeftOut, Outcome, Point, compare, conclude, list_counts, make_methods, summarise


class Watcher:
    """A method that notes what it is shown, and always says "a"."""

    seen: ClassVar[list[tuple[list[int], list[int]]]] = []

    def fit(self, images, y):
        self.learned = list(images)
        self.labels = y
        return self

    def predict(self, images):
        Watcher.seen.append((self.learned, list(images)))
        return np.array(["a"] * len(images))


def test_every_method_sees_the_same_draws():
    labels = np.repeat(["a", "b"], 8)
    groups = np.arange(16)
    groups[9] = groups[8]
    Watcher.seen = []
    outcomes = list(
        compare({"one": lambda seed: Watcher(), "two": lambda seed: Watcher()}, range(16), labels, groups, 2)
    )
    assert [(o.method, o.n_per_class, o.draw) for o in outcomes][:4] == [
        ("one", 1, 0),
        ("two", 1, 0),
        ("one", 1, 1),
        ("two", 1, 1),
    ]
    assert Watcher.seen[0] == Watcher.seen[1] != Watcher.seen[2]
    for (learned, tested), outcome in zip(Watcher.seen, outcomes, strict=True):
        assert len(learned) == 2 * outcome.n_per_class
        assert not set(groups[learned]) & set(groups[tested])
        assert outcome.accuracy == np.mean(labels[tested] == "a")


def test_counts_leave_something_to_test():
    assert list_counts(np.repeat(["a", "b"], [30, 6]), np.arange(36)) == [1, 2, 5]
    assert list_counts(np.repeat(["a", "b"], [30, 1]), np.arange(31)) == []
    with pytest.raises(ValueError, match="single picture"):
        list(compare({}, range(3), np.array(["a", "a", "b"]), np.arange(3)))


def test_a_curve_is_mean_and_interval():
    outcomes = [Outcome("m", 5, draw, accuracy, 10, 1.0, 0.1, 7) for draw, accuracy in enumerate((0.5, 0.6, 0.7))]
    (point,) = summarise(outcomes)["m"]
    assert point.accuracy == pytest.approx(0.6)
    assert point.high - point.accuracy == pytest.approx(4.3027 * 0.1 / np.sqrt(3), abs=1e-4)  # Student's t, 2 degrees


def make_curve(*points, draws=(-0.1, 0.0, 0.1)):
    """Draws far apart: only pairs of draws tell methods from each other."""
    return [Point(n, a, a - 0.2, a + 0.2, 1.0, 0.01, 1000, tuple(a + np.array(draws))) for n, a in points]


def test_sentences():
    sure = conclude({"x": make_curve((1, 0.5), (5, 0.9)), "y": make_curve((1, 0.6), (5, 0.7))})
    assert sure == [
        "With 5 images per class x is best: 90.0 %, 20.0 points above y.",
        "More labels would help: from 1 to 5 per class it gained 40.0 points.",
    ]
    other = make_curve((1, 0.6), (5, 0.895), draws=(0.1, 0.0, -0.1))
    unsure = conclude({"x": make_curve((1, 0.895), (5, 0.9)), "y": other})
    assert unsure[0] == ("With 5 images per class x has 90.0 %, y 89.5 %: these draws cannot tell which is better.")
    assert unsure[1].startswith("More labels would help little")
    assert "hardly help" in conclude({"x": make_curve((1, 0.9), (5, 0.995))})[1]


@pytest.mark.parametrize(
    ("draws", "n_tested", "is_sure"),
    [
        (((0.9,), (0.67,)), 500, True),  # one draw, far apart
        (((0.9, 0.7), (0.67, 0.6)), 500, True),  # two draws that differ: Student's t cannot tell
        (((0.9, 0.7), (0.67, 0.69)), 500, False),
        (((0.9,), (0.8,)), 20, False),  # two images of twenty
        (((1.0,), (0.95,)), 20, False),
        (((0.9,), (0.9,)), 500, False),
    ],
)
def test_far_apart_in_every_draw_is_sure_where_enough_images_are_tested(draws, n_tested, is_sure):
    x, y = (Point(5, float(np.mean(d)), 0.0, 1.0, 1.0, 0.01, 1000, d, n_tested) for d in draws)
    assert ("points above y" in conclude({"x": [x], "y": [y]})[0]) == is_sure


def test_methods_learn(digit_folder):
    paths = sorted(digit_folder.glob("digit[01]/*.png"))
    labels = np.array([path.parent.name for path in paths])
    methods = make_methods(["ddlcn fast", "RBF SVM", "linear SVM", "nearest neighbour", "SRC"])
    outcomes = list(compare(methods, paths, labels, np.arange(32), n_draws=1))
    assert {o.n_per_class for o in outcomes} == {1, 2, 5, 10}
    assert all(o.accuracy > 0.8 and o.n_bytes > 100 for o in outcomes if o.n_per_class == 10)
    with pytest.raises(ValueError, match="'magic' is not known"):
        make_methods(["magic"])


class Sleeper(Watcher):
    """A method that needs longer for more images."""

    def fit(self, images, y):
        if len(images) > 2:
            time.sleep(5.0)
        return super().fit(images, y)


def test_a_method_that_takes_too_long_is_not_asked_again():
    labels = np.repeat(["a", "b"], 8)
    methods = {"slow": lambda seed: Sleeper(), "quick": lambda seed: Watcher()}
    begin = time.perf_counter()
    outcomes = list(compare(methods, range(16), labels, np.arange(16), 2, budget=0.2))
    assert time.perf_counter() - begin < 4.0
    assert {o.n_per_class for o in outcomes if isinstance(o, LeftOut)} == {2, 5}
    curves = summarise(outcomes)
    assert [p.n_per_class for p in curves["slow"]] == [1]
    assert [p.n_per_class for p in curves["quick"]] == [1, 2, 5]
    assert conclude(curves)[0].startswith("With 5 images per class quick is best")


class Picky(Watcher):
    """A method that cannot do with these pictures."""

    def fit(self, images, y):
        raise ValueError("filter_size must be at most 3")


def test_a_method_that_cannot_is_left_out_and_the_others_go_on():
    methods = {"picky": lambda seed: Picky(), "quick": lambda seed: Watcher()}
    outcomes = list(compare(methods, range(16), np.repeat(["a", "b"], 8), np.arange(16), 1))
    assert {o.reason for o in outcomes if isinstance(o, LeftOut)} == {"filter_size must be at most 3"}
    curves = summarise(outcomes)
    assert curves["picky"] == []
    assert len(curves["quick"]) == 3

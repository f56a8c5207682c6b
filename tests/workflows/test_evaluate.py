"""Evaluation: counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier, load_model
from ddlcn.model_selection.metrics import TestResult, expected_calibration_error
from ddlcn.workflows.evaluate import Evaluation, evaluate
from ddlcn.workflows.predict import Prediction


def test_figures_are_what_was_counted():
    y_true = np.array(["a"] * 8 + ["b"] * 2)
    y_pred = np.array(["a"] * 6 + ["b"] * 2 + ["b", "a"])
    result = TestResult("by hand", y_true, y_pred)
    assert result.accuracy == 0.7
    assert result.balanced_accuracy == pytest.approx((6 / 8 + 1 / 2) / 2)
    assert result.list_confusions() == [("a", "b", 2), ("b", "a", 1)]
    low, high = result.interval
    assert (round(low, 4), round(high, 4)) == (0.3968, 0.8922)  # Wilson's interval for 7 of 10


def say(label, probability, known=True):
    rest = [other for other in "abc" if other != label]
    return Prediction("x", [(label, probability), (rest[0], 1 - probability), (rest[1], 0.0)], known)


@pytest.fixture
def by_hand():
    predictions = [
        say("a", 0.9),
        say("a", 0.8),
        say("b", 0.95),
        say("b", 0.6),
        say("a", 0.7, False),
        say("c", 0.4, False),
    ]
    labels = np.array(["a", "a", "a", "b", "b", "z"])
    return Evaluation(np.array(["a", "b", "c"]), labels, predictions, [], 0.01)


def test_figures(by_hand):
    assert by_hand.result.accuracy == 3 / 5
    assert by_hand.confusion.tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert [(r.label, r.n_images, r.n_right, r.n_claimed, r.predicted_as) for r in by_hand.by_class] == [
        ("b", 2, 1, 2, "a"),
        ("a", 3, 2, 3, "b"),
    ]
    assert by_hand.rejected == (1 / 5, 1.0)
    assert by_hand.area_for_unknown == 1.0  # the unknown image has the lowest confidence of all
    assert by_hand.list_worst(5).tolist() == [2, 4]


def test_without_unknown_images(by_hand):
    only = Evaluation(by_hand.classes, by_hand.labels[:5], by_hand.predictions[:5], [], 0.01)
    assert only.area_for_unknown is None
    assert only.rejected == (1 / 5, None)


def test_the_calibration_error():
    right = np.array([True] * 8 + [False] * 2)
    assert expected_calibration_error(np.full(10, 0.8), right) == pytest.approx(0.0)
    assert expected_calibration_error(np.full(10, 1.0), right) == pytest.approx(0.2)
    # two bins: promised 0.9 and kept 1 (half of the images), promised 0.5 and kept 0.6
    both = np.repeat([0.9, 0.5], 5)
    assert expected_calibration_error(both, right) == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)


def test_a_folder(digit_model, digit_folder, tmp_path):
    model = load_model(digit_model)
    paths = sorted(digit_folder.glob("*/1*.png"))
    (tmp_path / "bad.png").write_text("no")
    labels = [path.parent.name for path in paths]
    evaluation = evaluate(model, [*paths, tmp_path / "bad.png"], [*labels, "digit0"], [("other.png", "gone")])
    known = [i for i, label in enumerate(labels) if label != "digit4"]
    expected = model.score([paths[i] for i in known], [labels[i] for i in known])
    assert evaluation.result.accuracy == pytest.approx(expected)
    assert [failure.name for failure in evaluation.unreadable] == ["other.png", str(tmp_path / "bad.png")]
    assert 0.5 < evaluation.area_for_unknown <= 1.0


def test_folders_name_classes_that_are_numbers(digit_folder):
    paths = sorted(digit_folder.glob("digit[01]/*.png"))
    model = DDLCNClassifier(n_layers=1, atoms_per_class=2, random_state=0).fit(
        paths, [int(path.parent.name[-1]) for path in paths]
    )
    evaluation = evaluate(model, paths, [path.parent.name[-1] for path in paths])
    assert evaluation.result.accuracy > 0.9
    with pytest.raises(ValueError, match="'nine' is none of the model's classes, which are 0, 1"):
        evaluate(model, paths[:1], ["nine"])


def test_nothing_in_common(digit_model, digit_folder):
    with pytest.raises(ValueError, match="no image is of a class that the model knows"):
        evaluate(load_model(digit_model), [digit_folder / "digit4" / "01.png"], ["digit4"])

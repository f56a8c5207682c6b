"""Probabilities: one temperature, found on training folds only."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.svm import SVMConfig, calibration
from ddlcn.svm.calibration import (
    REJECTED,
    USUAL_TEMPERATURE,
    Calibration,
    Calibrator,
    FoldProblem,
    calibrate,
)
from ddlcn.utils.sampling import draw_in_proportion


def make_problem(noise: float, n: int = 120, n_classes: int = 3, kind: str = "liblinear") -> FoldProblem:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    F = np.eye(n_classes)[y] + noise * rng.normal(size=(n, n_classes))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    return FoldProblem(F @ F.T, y, SVMConfig(n_classes, 1.0, kind, np.ones(n_classes)), seed=0)


@pytest.mark.parametrize("kind", ["liblinear", "libsvm"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_harder_images_give_less_sure_probabilities(kind, n_classes):
    easy, hard = (calibrate(make_problem(noise, n_classes=n_classes, kind=kind), 1).temperature for noise in (0.1, 2.0))
    assert easy > 3 * hard > 0


def test_probabilities_follow_the_decisions():
    decisions = np.array([[0.5, -1.0, -0.2], [-2.0, 0.1, 0.0]])
    p = Calibrator(Calibration(2.0)).probabilities(decisions, None)
    expected = np.exp(2 * decisions) / np.exp(2 * decisions).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, expected)
    two = Calibrator(Calibration(2.0)).probabilities(np.array([0.3]), None)
    np.testing.assert_allclose(two, [[1 / (1 + np.exp(1.2)), 1 / (1 + np.exp(-1.2))]])


def test_the_work_is_done_once(monkeypatch):
    calibrator = Calibrator(make_problem(0.5))
    first = calibrator.find(1)
    monkeypatch.setattr(calibration, "calibrate", lambda *_: pytest.fail("calibrated again"))
    assert calibrator.find(1) == first


def test_a_class_with_one_image_leaves_the_stated_rule():
    problem = make_problem(0.5)
    y = problem.y.copy()
    y[y == 2] = 0
    y[0] = 2
    alone = FoldProblem(problem.gram, y, SVMConfig(3, 1.0, "liblinear", np.ones(3)), 0)
    assert calibrate(alone, 1) == Calibration()


def test_held_out_images_are_about_as_often_right_as_promised():
    """On fresh images of the same kind, the mean probability of the winner is close to the accuracy."""
    rng = np.random.default_rng(1)
    n, n_classes = 2000, 3
    y = np.arange(n) % n_classes
    F = np.eye(n_classes)[y] + 0.8 * rng.normal(size=(n, n_classes))
    train = slice(0, 400)
    gram = F[train] @ F[train].T
    settings = SVMConfig(n_classes, 1.0, "liblinear", np.ones(3))
    calibrator = Calibrator(FoldProblem(gram, y[train], settings, 0))
    dual = calibration.fit_dual(gram, y[train], n_classes, 1.0, np.ones(3), 1)
    decisions = F[400:] @ F[train].T @ dual + dual.sum(axis=0)
    p = calibrator.probabilities(decisions, 1)
    assert abs(p.max(axis=1).mean() - (p.argmax(axis=1) == y[400:]).mean()) < 0.05
    # So many of them, and no more, are predicted as images of no class at all.
    known = calibrator.is_known(decisions, 1)
    assert abs(1 - known.mean() - REJECTED) < 0.03
    assert p.max(axis=1)[~known].max() < p.max(axis=1)[known].min()


def test_a_large_training_set_is_sampled_in_proportion():
    y = np.repeat([0, 1, 2], [9000, 900, 3])
    chosen = draw_in_proportion(y, calibration.MAX_IMAGES, np.random.default_rng(0))
    counts = np.bincount(y[chosen])
    assert len(chosen) < 2100
    assert counts[2] == 2
    assert 8 < counts[0] / counts[1] < 12
    assert np.array_equal(np.unique(chosen), chosen)


def test_few_images_that_are_all_right_do_not_make_it_certain():
    temperature = calibrate(make_problem(0.01, n=6), 1).temperature
    assert USUAL_TEMPERATURE < temperature < 4 * USUAL_TEMPERATURE

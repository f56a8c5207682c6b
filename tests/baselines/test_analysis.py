"""ADDL: every update is a minimum, the objective falls, and easy classes are recognised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from ddlcn.baselines import ADDL
from ddlcn.baselines.analysis import Problem, Weights, cut


def make_classes(n=60, m=20, n_classes=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return normalize(rng.normal(size=(n_classes, m))[y] + noise * rng.normal(size=(n, m))), y


@pytest.fixture
def state():
    """A problem with all four unknowns somewhere."""
    X, y = make_classes(30, 12)
    problem = Problem(X, y, 3, Weights(0.7, 0.2, 0.3, 1.5, 0.05))
    rng = np.random.default_rng(1)
    D = [normalize(rng.normal(size=(k, problem.X.shape[1]))) for k in (3, 2, 4)]
    S = [rng.normal(size=(10, len(D_c))) for D_c in D]
    return problem, D, rng.normal(size=(9, problem.X.shape[1])), rng.normal(size=(3, 9)), S


def slope(measure, at, n=20, step=1e-5):
    """Steepest of n directional derivatives, by differences."""
    rng = np.random.default_rng(2)
    ways = [rng.normal(size=at.shape) for _ in range(n)]
    return max(abs(measure(at + step * way) - measure(at - step * way)) / (2 * step) for way in ways)


def put(array, own, part):
    array = array.copy()
    array[own] = part
    return array


@pytest.mark.parametrize("c", range(3))
@pytest.mark.parametrize("incoherence", [0.3, 0.7, 2.0])
def test_the_analysis_dictionary_is_a_minimum(state, c, incoherence):
    problem, D, P, W, S = state
    problem.weights = Weights(0.7, 0.2, incoherence, 1.5, 0.05)
    own = cut(D)[c]
    best = problem.solve_analysis(c, own, P, W, S[c])
    assert slope(lambda part: problem.measure(D, put(P, own, part), W, S), P[own]) > 1.0
    assert slope(lambda part: problem.measure(D, put(P, own, part), W, S), best) < 1e-5


def test_the_classifier_is_a_minimum(state):
    problem, D, P, _, S = state
    assert slope(lambda W: problem.measure(D, P, W, S), problem.solve_classifier(P)) < 1e-5


def test_codes_become_a_minimum(state):
    problem, D, P, W, S = state
    for _ in range(200):
        S[1] = problem.code(1, D[1], P[cut(D)[1]], S[1])
    assert slope(lambda code: problem.measure(D, P, W, [S[0], code, S[2]]), S[1]) < 1e-4


def test_axes_change_no_distance(state):
    X = make_classes(30, 12)[0]
    np.testing.assert_allclose(state[0].X @ state[0].X.T, X @ X.T, atol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_objective_falls(alpha):
    X, y = make_classes()
    model = ADDL(5, alpha=alpha, incoherence=0.3, max_iter=30).fit(X, y)
    assert (np.diff(model.objective_) <= 1e-9 * model.objective_[:-1]).all()
    assert model.objective_[-1] < 0.99 * model.objective_[0]


def test_atoms_stay_in_the_unit_ball():
    X, y = make_classes()
    assert np.linalg.norm(ADDL(5).fit(X, y).synthesis_, axis=1).max() < 1 + 1e-9


def test_with_a_heavy_norm_atoms_go_unused():
    X, y = make_classes()
    D = normalize(np.random.default_rng(0).normal(size=(6, 20)))
    used = []
    for alpha in (0.0, 2.0):
        problem = Problem(X, y, 3, Weights(1.0, alpha, 0.01, 1.0, 0.01))
        atoms = D @ problem.axes
        S = problem.X[problem.rows[0]] @ atoms.T
        for _ in range(300):
            S = problem.code(0, atoms, np.zeros_like(atoms), S)
        used.append(int((np.linalg.norm(S, axis=0) > 1e-3).sum()))
    assert used[0] == 6
    assert used[1] < 6


def test_without_the_other_terms_it_is_least_squares():
    """Labels weighed heavily, and as many atoms as dimensions: X P^T W^T is what any linear map can reach."""
    X, y = make_classes(60, 8, noise=1.0)
    model = ADDL(8, beta=1e4, ridge=1e-8, incoherence=0.0, max_iter=20).fit(X, y)
    H = np.eye(3)[y]
    best = ((H - X @ np.linalg.lstsq(X, H, rcond=None)[0]) ** 2).sum()
    assert ((H - model.decision_function(X)) ** 2).sum() == pytest.approx(best, rel=1e-3)


def test_recognises_easy_classes():
    X, y = make_classes(80, 30, 5)
    model = ADDL(4).fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) > 0.95
    assert model.synthesis_.shape == model.analysis_.shape == (20, 30)
    assert model.coef_.shape == (5, 20)


def test_one_image_per_class_and_a_black_one():
    X = np.vstack([np.random.default_rng(0).normal(size=(3, 6)), np.zeros((1, 6))])
    model = ADDL().fit(X, list("abcd"))
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X[:3]) == list("abc")).all()


@pytest.mark.parametrize(
    "wrong", [{"atoms_per_class": 0}, {"tau": 0}, {"alpha": -1}, {"incoherence": -1}, {"beta": 0}, {"ridge": 0}]
)
def test_says_what_is_wrong(wrong):
    X, y = make_classes()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ADDL(**wrong).fit(X, y)

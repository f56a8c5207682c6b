"""EasyDL: steps that never raise the objective, members that see what they are given, votes, easy data recognised."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from ddlcn.baselines import ensemble
from ddlcn.baselines.ensemble import EasyDL
from ddlcn.coding.omp import encode_omp

SMALL = {"atoms_per_class": 4, "n_nonzero": 4, "n_members": 5, "max_iter": 6, "init_iter": 3, "random_state": 0}


@pytest.fixture
def problem(faces):
    """X, H, D, Z, W of three members and weights (3, n), some of them zero."""
    X, y, _ = faces
    rng = np.random.default_rng(1)
    D, H = normalize(X[::5] + 0.3 * rng.normal(size=(12, 20))), np.eye(3)[y]
    Z = encode_omp(X, D, 4).toarray()
    return X, H, D, Z, rng.normal(size=(3, 12, 3)), 0.1 * rng.integers(0, 3, (3, 60))


@pytest.mark.parametrize("options", [{}, {"gamma": 0.5}, {"images": 0.3, "subspace": 0.3}, {"n_members": 1}])
def test_the_objective_falls(faces, options):
    X, y, _ = faces
    model = EasyDL(**{**SMALL, **options}).fit(X, y)
    assert len(model.objective_) == model.n_iter_ == 6
    assert (np.diff(model.objective_) <= 1e-9 * model.objective_[0]).all()


def test_no_step_raises_what_it_lowers(problem):
    X, H, D, Z, W, weights = problem
    for _ in range(5):
        before = ensemble.measure(X, H, D, Z, W, weights)
        ensemble.code_images(X, H, D, Z, W, weights, 4)
        between = ensemble.measure(X, H, D, Z, W, weights)
        ensemble.update_atoms(X, H, D, Z, W, weights)
        assert ensemble.measure(X, H, D, Z, W, weights) <= between * (1 + 1e-12)
        assert between <= before * (1 + 1e-12)
        assert (np.count_nonzero(Z, axis=1) <= 4).all()
        assert_allclose(np.linalg.norm(D, axis=1), 1.0)


def test_codes_of_an_atom_are_at_their_minimum(problem):
    X, H, D, Z, W, weights = problem
    ensemble.update_atoms(X, H, D, Z, W, weights)
    k = len(D) - 1  # the last atom updated
    for i in np.flatnonzero(Z[:, k]):
        slope = (Z[i] @ D - X[i]) @ D[k]
        slope += sum(w[i] * (Z[i] @ V - H[i]) @ V[k] for w, V in zip(weights, W, strict=True))
        assert slope == pytest.approx(0.0, abs=1e-10)


def test_without_labels_codes_are_those_of_matching_pursuit(problem):
    X, H, D, Z, W, weights = problem
    Z[:] = 0.0
    ensemble.code_images(X, H, D, Z, W, 0.0 * weights, 4)
    assert_allclose(Z, encode_omp(X, D, 4).toarray(), atol=1e-10)


def test_a_member_is_ridge_regression_on_what_it_sees(problem):
    _, H, _, Z, _, _ = problem
    rng = np.random.default_rng(2)
    seen, planes = rng.random((2, 60)) < 0.6, rng.normal(size=(2, 12, 5))
    W, squares = ensemble.fit_members(Z, H, seen, planes, 0.3)
    own = [
        Ridge(0.3, fit_intercept=False).fit(Z[rows] @ P, H[rows]).coef_.T for rows, P in zip(seen, planes, strict=True)
    ]
    for b in range(2):
        assert_allclose(W[b], planes[b] @ own[b], atol=1e-10)
    assert squares == pytest.approx(sum((V**2).sum() for V in own))


def test_a_member_of_everything_is_ridge_regression(problem):
    _, H, _, Z, _, _ = problem
    W, _ = ensemble.fit_members(Z, H, np.ones((1, 60), bool), np.eye(12)[None], 0.3)
    assert_allclose(W[0], Ridge(0.3, fit_intercept=False).fit(Z, H).coef_.T, atol=1e-10)


def test_every_class_is_drawn_in_its_part():
    labels = np.repeat([0, 1, 2], [10, 5, 1])
    drawn = ensemble.draw_part(labels, 0.4, np.random.default_rng(0))
    assert_array_equal(np.bincount(labels[drawn]), [4, 2, 1])


def test_most_votes_win_and_the_mean_score_decides_between_equals():
    scores = np.array([[[0.1, 0.2, 0.0]], [[0.1, 0.2, 0.0]], [[9.0, 0.0, 0.0]]])
    assert ensemble.count_votes(scores).argmax(axis=1) == 1  # two votes against one, though its mean is lower
    scores = np.array([[[0.5, 0.4, 0.0]], [[0.0, 0.4, 0.3]]])
    assert ensemble.count_votes(scores).argmax(axis=1) == 1  # one vote each
    assert ensemble.count_votes(1e6 * scores).max() < 2


def test_recognises_mixtures(faces):
    X, y, new = faces
    names = np.array(["a", "b", "c"])
    model = EasyDL(**SMALL).fit(X, names[y])
    assert model.score(new, names[y]) > 0.9
    assert model.dictionary_.shape == (12, 20)
    assert model.coef_.shape == (5, 12, 3)
    codes = encode_omp(normalize(X), model.dictionary_, 4).toarray()
    right = [((codes @ W).argmax(axis=1) == y).mean() for W in model.coef_]
    assert model.score(X, names[y]) >= np.mean(right)  # together better than one by one
    assert len({member.tobytes() for member in model.coef_}) == 5


def test_same_seed_same_result_on_any_number_of_threads(faces):
    X, y, new = faces
    one = EasyDL(**SMALL, n_jobs=1).fit(X, y)
    assert_array_equal(one.decision_function(new), EasyDL(**SMALL, n_jobs=2).fit(X, y).decision_function(new))
    other = EasyDL(**{**SMALL, "random_state": 1}).fit(X, y)
    assert not np.array_equal(one.coef_, other.coef_)


def test_few_and_empty_images():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 6))
    assert_array_equal(EasyDL(random_state=0).fit(X, [0, 1]).predict(X), [0, 1])
    X = np.concatenate([rng.normal(size=(3, 6)), np.zeros((4, 6))])
    model = EasyDL(random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 2])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(EasyDL(random_state=0).fit(np.zeros((4, 6)), [0, 0, 1, 1]).decision_function(X)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("atoms_per_class", 0),
        ("n_nonzero", 0),
        ("gamma", -1.0),
        ("ridge", 0.0),
        ("n_members", 0),
        ("images", 0.0),
        ("images", 1.5),
        ("subspace", -1.0),
        ("subspace", 2.0),
        ("max_iter", 0),
        ("init_iter", -1),
    ],
)
def test_bad_parameters_are_named(faces, name, value):
    X, y, _ = faces
    with pytest.raises(ValueError, match=name):
        EasyDL(**{**SMALL, name: value}).fit(X, y)

"""Robust coding: the weighted lasso's optimality, what the weights are, and faces with a corner covered."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.preprocessing import normalize

from ddlcn.baselines.inputs import find_components
from ddlcn.baselines.robust import RRC_L1, code_weighted, weigh_residuals

ALPHA = 0.001
NOBODY = np.empty(0, np.intp)


def make_problem(n: int, m: int, seed: int = 0):
    """Rows of unit norm around a common face, a new one, and weights."""
    rng = np.random.default_rng(seed)
    A = normalize(rng.random(m) + 0.5 * rng.random((n, m)))
    x = normalize(rng.random((1, m)))[0]
    return A, x, rng.uniform(0.0, 1.0, m)


@pytest.mark.parametrize(("n", "m", "n_components"), [(60, 30, None), (30, 100, None), (60, 100, 20), (1, 5, None)])
def test_codes_are_optimal(n, m, n_components):
    A, x, w = make_problem(n, m)
    P = np.eye(m) if n_components is None else find_components(A, n_components)[1]
    z = code_weighted(x, A, w, None if n_components is None else P, ALPHA, NOBODY)
    B = (A * np.sqrt(w)) @ P.T
    pull = 2.0 * B @ ((x * np.sqrt(w)) @ P.T - z @ B)  # minus the gradient of the squared residual
    assert np.all(np.abs(pull[z == 0.0]) <= ALPHA * 1.01)
    np.testing.assert_allclose(pull[z != 0.0], ALPHA * np.sign(z[z != 0.0]), atol=0.01 * ALPHA)


def test_codes_are_those_of_another_solver():
    A, x, w = make_problem(60, 30)
    B, target = A * np.sqrt(w), x * np.sqrt(w)
    other = Lasso(alpha=0.5 * ALPHA / len(x), fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(B.T, target)
    np.testing.assert_allclose(code_weighted(x, A, w, None, ALPHA, NOBODY), other.coef_, atol=1e-4)


def test_the_start_does_not_change_the_code():
    A, x, w = make_problem(60, 30)
    cold = code_weighted(x, A, w, None, ALPHA, NOBODY)
    warm = code_weighted(x, A, w, None, ALPHA, np.arange(50))
    np.testing.assert_allclose(warm, cold, atol=1e-5)


def test_all_components_are_as_good_as_none():
    A, x, w = make_problem(60, 30)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))[0]
    np.testing.assert_allclose(
        code_weighted(x, A, w, rotation, ALPHA, NOBODY), code_weighted(x, A, w, None, ALPHA, NOBODY), atol=1e-5
    )


def test_a_pixel_without_weight_does_not_count():
    A, x, w = make_problem(40, 30)
    w[7] = 0.0
    before = code_weighted(x, A, w, None, ALPHA, NOBODY)
    x[7] = 100.0
    np.testing.assert_allclose(code_weighted(x, A, w, None, ALPHA, NOBODY), before, atol=1e-12)


def test_weights_fall_with_the_residual_and_are_one_half_at_the_quantile():
    e = np.random.default_rng(0).permutation(np.linspace(-1.0, 2.0, 101))
    w = weigh_residuals(e, 0.8, 8.0)
    order = np.argsort(np.abs(e))
    assert np.all(np.diff(w[order]) <= 1e-15)
    assert w.min() >= 0.0
    assert w.max() <= 1.0
    assert w[order[80]] == pytest.approx(0.5)
    np.testing.assert_allclose(weigh_residuals(1e-3 * e, 0.8, 8.0), w, atol=1e-12)


def test_nothing_is_an_outlier_where_nothing_is_left():
    np.testing.assert_array_equal(weigh_residuals(np.zeros(9), 0.8, 8.0), np.ones(9))


@pytest.fixture(scope="module")
def faces():
    """Ten people, each in eight mixtures of three lights: training and test images (n, 400), and labels."""
    rng = np.random.default_rng(0)
    lights = rng.random((10, 3, 400)) + 1.0
    mixtures = rng.dirichlet(np.ones(3), (10, 12))
    images = np.einsum("pnl,plm->pnm", mixtures, lights) + 0.01 * rng.normal(size=(10, 12, 400))
    y = np.arange(10)
    return images[:, :8].reshape(-1, 400), np.repeat(y, 8), images[:, 8:].reshape(-1, 400), np.repeat(y, 4)


@pytest.mark.parametrize("n_components", [None, 50, 1000])
def test_recognises_faces(faces, n_components):
    X, y, new, labels = faces
    assert RRC_L1(n_components=n_components).fit(X, y).score(new, labels) == 1.0


def test_covered_faces_need_the_weights(faces):
    X, y, new, labels = faces
    covered = new.copy()
    covered[:, :100] = 0.0
    robust = RRC_L1(tau=0.6, n_reweightings=10).fit(X, y).score(covered, labels)
    # A quantile at the largest residual leaves next to every pixel its weight.
    plain = RRC_L1(tau=1.0, steepness=100.0, n_reweightings=1).fit(X, y).score(covered, labels)
    assert robust >= 0.95
    assert plain <= 0.7


def test_scale_of_an_image_does_not_matter(faces):
    X, y, new, _ = faces
    model = RRC_L1().fit(X, y)
    np.testing.assert_allclose(model.decision_function(7.0 * new[:4]), model.decision_function(new[:4]), atol=1e-9)


def test_threads_do_not_change_the_scores(faces):
    X, y, new, _ = faces
    one, two = (RRC_L1(n_jobs=n).fit(X, y).decision_function(new[:6]) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_constant_and_repeated_images():
    X = np.zeros((6, 20))
    X[2:] = np.random.default_rng(0).random(20)
    model = RRC_L1(n_components=5).fit(X, [0, 0, 0, 1, 1, 1])
    assert np.isfinite(model.decision_function(np.vstack([X, np.zeros((1, 20)), np.ones((1, 20))]))).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a number above 0"),
        ({"tau": 1.5}, "tau must be a share"),
        ({"steepness": 0}, "steepness must be"),
        ({"n_reweightings": 0}, "n_reweightings must be"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RRC_L1(**parameters).fit(np.eye(4), [0, 0, 1, 1])

"""The SVM: both routes solve the same problem, to solver tolerance, and it is liblinear's problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.svm import SVC, LinearSVC

from ddlcn.svm import LinearSVM, SVMConfig, fit_svm, gram_matrix
from ddlcn.svm.linear import DENSE_COLUMNS


def make_problem(n_classes: int, n: int = 90, n_columns: int = 400, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = rng.random((n_classes, n_columns)) * 0.5
    F = np.where(rng.random((n, n_columns)) < 0.3, rng.random((n, n_columns)) + centres[y], 0)
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    return sparse.csr_array(F.astype(np.float32)), y


@pytest.fixture(params=[2, 5], ids=["two classes", "five classes"])
def problem(request):
    return (*make_problem(request.param), request.param)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gram_route_agrees_with_liblinear(problem, C, weighted):
    F, y, n_classes = problem
    weights = np.linspace(1, 3, n_classes) if weighted else np.ones(n_classes)
    found = fit_svm(F, gram_matrix(F), y, SVMConfig(n_classes, C, "liblinear", weights), n_jobs=2)
    liblinear = LinearSVC(C=C, tol=1e-9, max_iter=1_000_000, class_weight=dict(enumerate(weights))).fit(F, y)
    np.testing.assert_allclose(found.coef, liblinear.coef_, atol=1e-5)
    np.testing.assert_allclose(found.intercept, liblinear.intercept_, atol=1e-5)
    np.testing.assert_allclose(found.decide(F), liblinear.decision_function(F), atol=1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_two_routes_agree(problem, C):
    F, y, n_classes = problem
    weights = np.linspace(1, 2, n_classes)
    by_gram = fit_svm(F, gram_matrix(F), y, SVMConfig(n_classes, C, "liblinear", weights), n_jobs=1)
    by_features = fit_svm(F, None, y, SVMConfig(n_classes, C, "liblinear", weights), n_jobs=2)
    assert np.abs(by_gram.decide(F) - by_features.decide(F)).max() < 5e-3  # liblinear stops at tol = 1e-4
    assert np.array_equal(by_gram.decide(F) > 0, by_features.decide(F) > 0)


def test_the_gram_route_is_optimal():
    """Its objective is no higher than what a general-purpose minimiser finds."""
    F, y = make_problem(2, n=30, n_columns=40)
    found = fit_svm(F, gram_matrix(F), y, SVMConfig(2, 2.0, "liblinear", np.ones(2)), n_jobs=1)
    dense, signs = F.toarray().astype(np.float64), np.where(y == 1, 1.0, -1.0)

    def objective(w):
        hinge = np.maximum(0, 1 - signs * (dense @ w[:-1] + w[-1]))
        return 0.5 * w @ w + 2.0 * (hinge**2).sum()

    ours = objective(np.append(found.coef[0], found.intercept))
    theirs = optimize.minimize(objective, np.zeros(41), method="L-BFGS-B", options={"maxiter": 5000}).fun
    assert ours <= theirs + 1e-6


def test_libsvm_is_scikit_learns_svc(problem):
    F, y, n_classes = problem
    found = fit_svm(F, None, y, SVMConfig(n_classes, 1.0, "libsvm", np.ones(n_classes)), n_jobs=1)
    expected = SVC(kernel="linear").fit(F, y)
    np.testing.assert_allclose(found.decide(F), expected.decision_function(F), atol=1e-10)
    assert len(found.coef) == n_classes * (n_classes - 1) // 2


def test_threads_do_not_change_the_weights():
    F, y = make_problem(5)
    for gram in (gram_matrix(F), None):
        one, two = (fit_svm(F, gram, y, SVMConfig(5, 1.0, "liblinear", np.ones(5)), n_jobs) for n_jobs in (1, 2))
        assert np.array_equal(one.coef, two.coef)
        assert np.array_equal(one.intercept, two.intercept)


@pytest.mark.parametrize("n_columns", [60, DENSE_COLUMNS])
@pytest.mark.parametrize("density", [0.01, 0.5])
def test_decisions_are_the_product_however_dense_the_features(density, n_columns):
    rng = np.random.default_rng(0)
    features = sparse.random_array((37, n_columns), density=density, format="csr", dtype=np.float32, rng=rng)
    svm = LinearSVM(rng.normal(size=(4, n_columns)).astype(np.float32), rng.normal(size=4), False, 4)
    expected = features.astype(np.float64) @ svm.coef.T.astype(np.float64) + svm.intercept
    np.testing.assert_allclose(svm.decide(features), expected, atol=2e-6 * np.sqrt(n_columns))


def test_few_columns_are_decided_alike_whatever_lies_beside_them():
    rng = np.random.default_rng(0)
    features = sparse.random_array((37, 300), density=0.5, format="csr", dtype=np.float32, rng=rng)
    svm = LinearSVM(rng.normal(size=(4, 300)).astype(np.float32), rng.normal(size=4), False, 4)
    singly = np.concatenate([svm.decide(features[i : i + 1]) for i in range(37)])
    np.testing.assert_array_equal(svm.decide(features), singly)

"""DBDL and JBDC: the draws have the distributions they should have, and what is easy is recognised."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from ddlcn.baselines.bayesian import DBDL, JBDC, Sum, draw_chances, draw_codes, draw_factors, draw_model


def make_classes(n_classes=4, per_class=12, m=25, seed=0):
    """Images that are sums of two or three of their class's own four atoms."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(n_classes, 4, m))
    y = np.repeat(np.arange(n_classes), per_class)
    weights = rng.uniform(0.5, 1.5, size=(len(y), 4)) * (rng.random((len(y), 4)) < 0.7)
    weights[:, 0] += 0.5
    X = np.einsum("ik,ikm->im", weights, atoms[y]) + 0.05 * rng.normal(size=(len(y), m))
    return normalize(X), y


def test_factors_have_the_distribution_of_ridge_regression():
    """Over many rounds, the mean and the variance of the draws are those of the known normal posterior."""
    rng = np.random.default_rng(0)
    C, Y, noise, prior = rng.normal(size=(30, 3)), rng.normal(size=(30, 2)), 4.0, 2.0
    D, draws = np.zeros((3, 2)), []
    for _ in range(5000):
        draw_factors(D, C.T @ C, C.T @ Y, noise, prior, rng.standard_normal((3, 2)))
        draws.append(D.copy())
    covariance = np.linalg.inv(noise * C.T @ C + prior * np.eye(3))
    np.testing.assert_allclose(np.mean(draws, axis=0), noise * covariance @ C.T @ Y, atol=0.01)
    np.testing.assert_allclose(np.cov(np.array(draws)[:, :, 0].T), covariance, atol=0.001)


def test_codes_have_the_distribution_that_counting_all_cases_gives():
    """Three factors have eight patterns of use. The chance of each is known; the draws must show it."""
    rng = np.random.default_rng(1)
    K, noise, spread = 3, 3.0, 1.0
    D, x = rng.normal(size=(K, 4)), rng.normal(size=4)
    odds = np.array([[-0.5, 0.2, -1.0]])
    patterns = np.array([[bool(i >> k & 1) for k in range(K)] for i in range(8)])
    logs = []
    for pattern in patterns:  # x given a pattern is normal, with this variance
        variance = np.eye(4) / noise + D[pattern].T @ D[pattern] / spread
        logs.append(-0.5 * (np.linalg.slogdet(variance)[1] + x @ np.linalg.solve(variance, x)) + odds[0, pattern].sum())
    expected = np.exp(logs) / np.exp(logs).sum()

    n, rounds = 4000, 40  # independent chains, rounds
    used, weights = np.zeros((n, K), bool), rng.standard_normal((n, K))
    counts = np.zeros(8)
    for step in range(rounds):
        left = (x - np.where(used, weights, 0.0) @ D) @ D.T
        draws = rng.random((n, K)), rng.standard_normal((n, K))
        draw_codes(used, weights, left, D @ D.T, odds, np.array([spread]), np.zeros(n, np.intp), noise, *draws)
        np.testing.assert_allclose(left, (x - np.where(used, weights, 0.0) @ D) @ D.T, atol=1e-9)
        if step >= rounds // 2:
            counts += np.bincount(used @ [1, 2, 4], minlength=8)
    np.testing.assert_allclose(counts / counts.sum(), expected, atol=0.015)


def test_chances_follow_use():
    rng = np.random.default_rng(0)
    counts, sizes = np.array([[0.0, 5.0, 10.0]]), np.array([10.0])
    mean = np.mean([draw_chances(counts, sizes, 6.0, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, (2 + counts) / (2 + 4 + 10), atol=0.01)


def test_count_and_keep():
    used = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1]], bool)
    part = Sum(np.zeros((3, 2)), np.array([0, 0, 1]), np.eye(3, 2), used, np.ones((3, 3)), np.ones(2), 1.0)
    np.testing.assert_array_equal(part.count(), [[2, 0, 1], [0, 0, 1]])
    part.keep(np.array([True, False, True]))
    np.testing.assert_array_equal(part.codes().toarray(), used[:, [0, 2]])
    assert part.D.shape == (2, 2)


@pytest.mark.parametrize("joint", [False, True])
def test_model_explains_its_images_with_few_factors(joint):
    X, y = make_classes()
    phi, psi, chances = draw_model(X, y, 60, 10, 40, joint, np.random.default_rng(0))
    assert len(phi) == len(psi) == chances.shape[1] < 60
    assert ((chances > 0.3).sum(axis=0) <= 2).all(), "a factor that is often used belongs to few classes"
    assert (chances.max(axis=1) > 0.1).all(), "every class has factors of its own"


@pytest.mark.parametrize("method", [DBDL, JBDC])
def test_recognises_easy_classes(method):
    X, y = make_classes(per_class=30)
    model = method(n_nonzero=5, n_iter=30, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize("method", [DBDL, JBDC])
def test_the_seed_decides_and_threads_do_not(method):
    X, y = make_classes(2, 150, 6)
    first, same, other = (
        method(0.1, 3, 3, random_state=seed, n_jobs=jobs).fit(X, y).dictionary_
        for seed, jobs in ((0, 1), (0, 2), (1, 1))
    )
    np.testing.assert_array_equal(first, same)
    assert first.shape != other.shape or not np.allclose(first, other)


@pytest.mark.parametrize("method", [DBDL, JBDC])
def test_one_image_per_class_and_a_black_one(method):
    X = np.vstack([np.random.default_rng(0).normal(size=(3, 6)), np.zeros((1, 6))])
    model = method(random_state=0).fit(X, list("abcd"))
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(method(random_state=0).fit(np.zeros((4, 3)), list("abab")).decision_function(X[:, :3])).all()


@pytest.mark.parametrize("wrong", [{"atoms_per_image": 0}, {"n_nonzero": 0}, {"n_iter": 0}])
def test_says_what_is_wrong(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DBDL(**wrong).fit(*make_classes())

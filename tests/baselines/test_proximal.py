"""MBAP: blocks that never raise the objective and solve their subproblems, codes at a minimum, easy data recognised."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from ddlcn.baselines import proximal
from ddlcn.baselines.ksvd import KSVD
from ddlcn.baselines.proximal import MBAP, encode_l0, measure, step_blocks
from ddlcn.coding.omp import encode_omp

SMALL = {"atoms_per_class": 4, "n_nonzero": 4, "max_iter": 5, "init_iter": 5, "random_state": 0}


@pytest.fixture
def problem(faces):
    """X, H, D, Z, V, penalty, weights and ridge to start from, with labels that weigh something."""
    X, y, _ = faces
    rng = np.random.default_rng(1)
    D, H = normalize(X[::6]), np.eye(3)[y]
    Z = encode_omp(X, D, 3).toarray()
    return X, H, D, Z, rng.normal(size=(len(D), 3)), 3e-3, np.array([0.1, 0.2, 0.3]), 0.05


def step_slowly(X, H, D, Z, V, penalty, weights, ridge):
    """The same round, each block from scratch: both choices for every entry, and the sphere's nearest point."""
    D, Z, prox = D.copy(), Z.copy(), proximal.PROX
    for k in range(len(D)):
        for i in range(len(X)):

            def cost(value, i=i, k=k):
                z = Z[i].copy()
                z[k] = value
                left = ((X[i] - z @ D) ** 2).sum() + weights @ (H[i] - z @ V) ** 2 + prox * (value - Z[i, k]) ** 2
                return left / 2 + penalty * (value != 0)

            # The parabola through three values has its minimum at the best nonzero entry.
            low, middle, high = ((cost(v) - penalty * (v != 0)) for v in (-1.0, 0.0, 1.0))
            best = (low - high) / 2 / (low + high - 2 * middle)
            Z[i, k] = best if cost(best) < cost(0.0) else 0.0
        if Z[:, k].any():
            z = Z[:, k]
            others = X - Z @ D + np.outer(z, D[k])
            aim = z @ others + prox * D[k]
            D[k] = aim / np.linalg.norm(aim)
    return D, Z, Ridge(ridge, fit_intercept=False).fit(Z, H).coef_.T


def test_a_round_equals_the_slow_one(problem):
    D, Z, V, value = step_blocks(*problem)
    slow_D, slow_Z, slow_V = step_slowly(*problem)
    assert_array_equal(Z != 0, slow_Z != 0)
    assert_allclose(Z, slow_Z, atol=1e-9)
    assert_allclose(D, slow_D, atol=1e-9)
    assert_allclose(V, slow_V, atol=1e-8)
    X, H, *_ = problem
    assert value == pytest.approx(measure(X, H, slow_D, slow_Z, slow_V, *problem[5:]))


@pytest.mark.parametrize("penalty", [0.0, 1e-4, 1e-2])
def test_no_round_raises_the_objective(problem, penalty):
    X, H, D, Z, V, _, weights, ridge = problem
    before = measure(X, H, D, Z, V, penalty, weights, ridge)
    for _ in range(15):
        D, Z, V, after = step_blocks(X, H, D, Z, V, penalty, weights, ridge)
        assert after <= before * (1 + 1e-12)
        assert_allclose(np.linalg.norm(D, axis=1), 1.0)
        before = after


def test_the_iterates_converge(problem):
    X, H, D, Z, V, penalty, weights, ridge = problem
    moves = []
    for _ in range(400):
        was = D
        D, Z, V, _ = step_blocks(X, H, D, Z, V, penalty, weights, ridge)
        moves.append(np.abs(D - was).max())
    assert moves[-1] < 1e-2 * moves[0]


def test_label_consistency_is_more_weight_on_the_labels(faces):
    """Codes of [X, sqrt(alpha) Q, sqrt(beta) H] as published are those of weights alpha p_c + beta."""
    X, y, _ = faces
    alpha, beta, ridge, penalty, sizes = 0.05, 0.1, 0.2, 1e-3, (2, 4, 1)
    owner = np.repeat([0, 1, 2], sizes)
    D = normalize(np.concatenate([X[y == c][:p] for c, p in enumerate(sizes)]))
    H, Q = np.eye(3)[y], (y[:, None] == owner).astype(float)
    targets, published_weights = np.hstack([Q, H]), np.repeat([alpha, beta], [7, 3])
    Z = encode_omp(X, D, 3).toarray()
    ours = published = (D, Z, Ridge(ridge, fit_intercept=False).fit(Z, H).coef_.T)
    published = (D, Z, Ridge(ridge, fit_intercept=False).fit(Z, targets).coef_.T)
    for _ in range(4):
        *ours, value = step_blocks(X, H, *ours, penalty, alpha * np.bincount(owner) + beta, ridge)
        *published, stacked = step_blocks(X, targets, *published, penalty, published_weights, ridge)
        assert value == pytest.approx(stacked)
    assert_allclose(ours[0], published[0], atol=1e-9)
    assert_allclose(ours[2], published[2][:, 7:], atol=1e-8)


def test_new_codes_are_at_a_minimum_along_every_entry(faces):
    X, _, new = faces
    D, new, penalty = normalize(X[::6]), normalize(new), 2e-3
    Z = encode_l0(new, D, penalty, 3)
    start = encode_omp(new, D, 3).toarray()

    def cost(codes):
        return ((new - codes @ D) ** 2).sum(axis=1) / 2 + penalty * np.count_nonzero(codes, axis=1)

    assert (cost(Z) <= cost(start) + 1e-12).all()
    for k in range(len(D)):
        for value in (0.0, *np.linspace(-1, 1, 41)):
            changed = Z.copy()
            changed[:, k] = value
            assert (cost(changed) >= cost(Z) - 1e-6).all()


def test_without_a_price_a_code_is_least_squares(faces):
    X, _, new = faces
    D = normalize(X[::20])
    Z = encode_l0(normalize(new), D, 0.0, 3)
    assert_allclose(Z, np.linalg.lstsq(D.T, normalize(new).T, rcond=None)[0].T, atol=1e-4)


def test_a_high_price_empties_the_codes(faces):
    X, y, _ = faces
    assert not encode_l0(X, normalize(X[::6]), 1.0, 3).any()
    assert np.isfinite(MBAP(**{**SMALL, "penalty": 1.0}).fit(X, y).decision_function(X)).all()


def test_recognises_mixtures_with_fewer_entries_than_ksvd(faces):
    X, y, new = faces
    names = np.array(["a", "b", "c"])
    model = MBAP(**{**SMALL, "penalty": 1e-3}).fit(X, names[y])
    assert model.score(new, names[y]) > 0.9
    assert model.dictionary_.shape == (12, 20)
    assert model.coef_.shape == (3, 12)
    assert_allclose(np.linalg.norm(model.dictionary_, axis=1), 1.0)
    assert len(model.objective_) == model.n_iter_ == 5
    assert (np.diff(model.objective_) <= 0).all()
    codes = encode_l0(normalize(new), model.dictionary_, 1e-3, 4)
    rival = KSVD(**SMALL).fit(X, y)
    assert np.count_nonzero(codes) < np.count_nonzero(encode_omp(normalize(new), rival.dictionary_, 4).toarray())


def test_same_seed_same_result_on_any_number_of_threads(faces):
    X, y, new = faces
    one = MBAP(**SMALL, n_jobs=1).fit(X, y)
    assert_array_equal(one.decision_function(new), MBAP(**SMALL, n_jobs=2).fit(X, y).decision_function(new))
    other = MBAP(**{**SMALL, "random_state": 1}).fit(X, y)
    assert not np.array_equal(one.dictionary_, other.dictionary_)


def test_few_and_empty_images():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 6))
    assert_array_equal(MBAP(random_state=0).fit(X, [0, 1]).predict(X), [0, 1])
    X = np.concatenate([rng.normal(size=(3, 6)), np.zeros((4, 6))])
    model = MBAP(random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 2])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(MBAP(random_state=0).fit(np.zeros((4, 6)), [0, 0, 1, 1]).decision_function(X)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("atoms_per_class", 0),
        ("penalty", -1.0),
        ("alpha", -1.0),
        ("beta", -1.0),
        ("ridge", 0.0),
        ("max_iter", 0),
        ("n_nonzero", 0),
        ("init_iter", -1),
    ],
)
def test_bad_parameters_are_named(faces, name, value):
    X, y, _ = faces
    with pytest.raises(ValueError, match=name):
        MBAP(**{**SMALL, name: value}).fit(X, y)

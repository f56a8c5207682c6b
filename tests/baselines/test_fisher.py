"""FDDL and LRSDL: the gradient is the derivative, every step lowers the objective, easy classes are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ddlcn.baselines import fisher
from ddlcn.baselines.class_dictionaries import SHARED, code_images, shrink_rank, start_dictionary, step_atoms
from ddlcn.baselines.fisher import FDDL, LRSDL

Array = NDArray[Any]


def make_classes(n_per_class: int, seed: int = 0, common: float = 2.0, n_classes: int = 4, m: int = 40) -> Any:
    """Rows (n, m) in one plane per class, plus a strong part that all classes share, plus noise; and classes."""
    rng = np.random.default_rng(7)  # the planes; `seed` draws the points
    planes, shared = rng.normal(size=(n_classes, 2, m)), rng.normal(size=(2, m))
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = np.einsum("nk,nkm->nm", rng.normal(size=(len(y), 2)), planes[y])
    X += common * rng.normal(size=(len(y), 2)) @ shared + 0.1 * rng.normal(size=(len(y), m))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def sum_over_pairs(Z: Array, y: Array) -> float:
    """The Fisher term from distances between codes, without any mean: within, minus between, plus ||Z||^2."""
    n = len(Z)
    within = total = 0.0
    for i in range(n):
        for j in range(n):
            gap = float(((Z[i] - Z[j]) ** 2).sum())
            total += gap / (2 * n)
            if y[i] == y[j]:
                within += gap / (2 * (y == y[i]).sum())
    return float((Z**2).sum()) + within - (total - within)


def slow_objective(
    X: Array, y: Array, D: Array, labels: Array, Z: Array, lambda1: float, lambda2: float, eta: float
) -> float:
    """The objective as the papers write it, image by image and class by class."""
    total = 0.0
    for x, c, z in zip(X, y, Z, strict=True):
        left = x - z[labels == SHARED] @ D[labels == SHARED]
        parts = [z[labels == j] @ D[labels == j] for j in range(y.max() + 1)]
        total += ((left - sum(parts)) ** 2).sum() + ((left - parts[c]) ** 2).sum()
        total += sum((part**2).sum() for j, part in enumerate(parts) if j != c)
    Z_own, Z_0 = Z[:, labels != SHARED], Z[:, labels == SHARED]
    total += lambda2 * (sum_over_pairs(Z_own, y) + ((Z_0 - Z_0.mean(axis=0)) ** 2).sum())
    nuclear = np.linalg.norm(D[labels == SHARED], "nuc") if (labels == SHARED).any() else 0.0
    return total / 2 + lambda1 * np.abs(Z).sum() + eta * nuclear


@pytest.fixture
def problem() -> Any:
    X, y = make_classes(5, n_classes=3, m=12)
    y = y[np.random.default_rng(1).permutation(len(y))]  # nothing may rest on classes being in order
    D, labels = start_dictionary(X, y, 3, 2)
    Z = np.random.default_rng(2).normal(size=(len(X), len(D))) * 0.1
    return X, y, D, labels, Z


def test_fisher_term_is_the_sum_over_pairs_and_its_gradient_the_derivative(problem):
    _, y, _, _, Z = problem
    assert fisher.fisher_term(Z, y) == pytest.approx(sum_over_pairs(Z, y))
    gradient = fisher.fisher_gradient(Z, y)
    for i, k in [(0, 0), (3, 5), (14, 10)]:
        step = np.zeros_like(Z)
        step[i, k] = 1e-4
        slope = (sum_over_pairs(Z + step, y) - sum_over_pairs(Z - step, y)) / 2e-4
        assert gradient[i, k] == pytest.approx(slope / 2, abs=1e-6)


def test_objective_is_the_papers(problem):
    X, y, D, labels, Z = problem
    weights = (0.01, 0.3, 0.2)
    assert fisher.measure(X, y, D, labels, Z, *weights) == pytest.approx(slow_objective(X, y, D, labels, Z, *weights))


def test_every_step_lowers_the_objective(problem):
    X, y, D, labels, Z = problem
    weights = (0.01, 0.1, 0.05)
    last = fisher.measure(X, y, D, labels, Z, *weights)
    for _ in range(5):
        Z = fisher.code(X, y, D, labels, Z, *weights[:2], n_jobs=1)
        after_codes = fisher.measure(X, y, D, labels, Z, *weights)
        D = fisher.step_class_atoms(X, y, D, labels, Z)
        after_atoms = fisher.measure(X, y, D, labels, Z, *weights)
        D = fisher.step_shared_atoms(X, y, D, labels, Z, weights[2])
        after_shared = fisher.measure(X, y, D, labels, Z, *weights)
        assert last >= after_codes >= after_atoms >= after_shared
        assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-12
        last = after_shared


def test_codes_settle_where_no_step_helps(problem):
    """Repeated, the codes meet the optimality conditions of the true objective, means and all."""
    X, y, D, labels, Z = problem
    lambda1, lambda2 = 0.02, 0.1
    for _ in range(300):
        Z = fisher.code(X, y, D, labels, Z, lambda1, lambda2, n_jobs=1)
    common = labels == SHARED
    gradient = np.empty_like(Z)
    for i in range(len(Z)):
        for k in range(Z.shape[1]):
            step = np.zeros_like(Z)
            step[i, k] = 1e-5
            up, down = (fisher.measure(X, y, D, labels, Z + s, 0.0, lambda2, 0.0) for s in (step, -step))
            gradient[i, k] = (up - down) / 2e-5
    assert (Z[:, common] != 0).any()
    zero = Z == 0
    assert np.abs(gradient[zero]).max() <= lambda1 * 1.02
    np.testing.assert_allclose(gradient[~zero], -lambda1 * np.sign(Z[~zero]), atol=0.02 * lambda1)


def test_a_code_is_the_minimum_of_its_problem():
    rng = np.random.default_rng(0)
    D, X, alpha = rng.normal(size=(60, 20)), rng.normal(size=(7, 20)), 0.5
    H, B = D @ D.T, X @ D.T
    Z = code_images(H, B, alpha, n_jobs=1)
    gradient = Z @ H - B
    assert np.abs(gradient).max() <= 1.01 * alpha
    np.testing.assert_allclose(gradient[Z != 0], -alpha * np.sign(Z[Z != 0]), atol=0.01 * alpha)


def test_atoms_settle_where_no_atom_can_be_bettered():
    rng = np.random.default_rng(0)
    A, labels = rng.normal(size=(9, 6)), np.array([0, 0, 1, 1, 1, 2])
    F, E = A.T @ A, rng.normal(size=(6, 4)) * 3
    D = step_atoms(rng.normal(size=(6, 4)), F, E, labels, n_sweeps=500)
    best = E - F @ D + np.diag(F)[:, None] * D  # each atom's free minimum, times its curvature
    best /= np.maximum(np.diag(F), np.linalg.norm(best, axis=1))[:, None]
    np.testing.assert_allclose(D, best, atol=1e-8)


def test_shrink_rank_is_the_minimum():
    A = np.random.default_rng(0).normal(size=(4, 9))
    J = shrink_rank(A, 1.5)
    U, s, V = np.linalg.svd(J, full_matrices=False)
    rank = int((s > 1e-9).sum())
    subgradient = (A - J) / 1.5  # of the nuclear norm: U V^T on J's own part, no longer than one elsewhere
    assert 0 < rank < 4
    np.testing.assert_allclose(U[:, :rank].T @ subgradient @ V[:rank].T, np.eye(rank), atol=1e-9)
    assert np.linalg.norm(subgradient, 2) <= 1 + 1e-9


def test_without_shared_atoms_lrsdl_is_fddl():
    X, y = make_classes(8)
    new, _ = make_classes(5, seed=1)
    values = {"lambda1": 0.003, "lambda2": 0.02, "gamma": 0.004, "weight": 0.3}
    plain, shared = FDDL(4, **values).fit(X, y), LRSDL(4, n_shared=0, eta=7.0, **values).fit(X, y)
    np.testing.assert_array_equal(plain.dictionary_, shared.dictionary_)
    np.testing.assert_array_equal(plain.decision_function(new), shared.decision_function(new))


@pytest.mark.parametrize("model", [FDDL(2), FDDL(), LRSDL(2)], ids=str)
def test_tells_planes_apart(model):
    X, y = make_classes(20, common=0.0)
    new, y_true = make_classes(20, seed=1, common=0.0)
    names = np.array(["a", "b", "c", "d"])
    assert (model.fit(X, names[y]).predict(new) == names[y_true]).mean() >= 0.95
    assert (np.diff(model.objective_) <= 0).all()
    assert ((model.atom_labels_ == SHARED).sum() > 0) == isinstance(model, LRSDL)


def test_shared_atoms_take_out_what_hides_the_planes():
    X, y = make_classes(20, common=2.0)
    new, y_true = make_classes(20, seed=1, common=2.0)
    plain, shared = FDDL(2, weight=0.1).fit(X, y), LRSDL(2, n_shared=2, weight=0.1).fit(X, y)
    assert shared.score(new, y_true) >= 0.95 > 0.8 > plain.score(new, y_true)


def test_shared_atoms_find_the_common_part():
    X, y = make_classes(30, common=3.0)
    rng = np.random.default_rng(7)
    rng.normal(size=(4, 2, 40))
    shared = rng.normal(size=(2, 40))  # as `make_classes` draws it
    model = LRSDL(2, n_shared=2).fit(X, y)
    basis = np.linalg.qr(model.dictionary_[model.atom_labels_ == SHARED].T)[0]
    shared = np.linalg.qr(shared.T)[0]
    assert np.linalg.svd(basis.T @ shared, compute_uv=False).min() >= 0.9  # cosines of the angles between the planes


def test_a_large_eta_lowers_the_rank():
    X, y = make_classes(10)
    ranks = []
    for eta in (0.0, 0.3):
        model = LRSDL(2, n_shared=4, eta=eta, max_iter=30, tol=0.0).fit(X, y)
        singular = np.linalg.svd(model.dictionary_[model.atom_labels_ == SHARED], compute_uv=False)
        ranks.append(singular.sum())
    assert ranks[1] < 0.7 * ranks[0]


@pytest.mark.parametrize("model", [FDDL(), LRSDL()], ids=str)
def test_few_and_empty_images(model):
    """One image per class, two classes, more atoms asked for than images, images of zeros."""
    X, y = make_classes(1, n_classes=2)
    assert (model.set_params(atoms_per_class=9).fit(X, y).predict(X) == y).all()
    X = np.concatenate([X, np.zeros((2, X.shape[1]))])
    assert np.isfinite(model.fit(X, [0, 1, 0, 1]).decision_function(X)).all()
    assert np.isfinite(model.fit(np.zeros((4, 3)), [0, 1, 0, 1]).decision_function(np.ones((2, 3)))).all()


def test_threads_change_nothing():
    X, y = make_classes(8)
    one, two = (LRSDL(4, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.dictionary_, two.dictionary_)


@pytest.mark.parametrize(
    "wrong", [{"lambda1": 0}, {"lambda2": -1}, {"gamma": 0}, {"weight": -1}, {"atoms_per_class": 0}, {"n_shared": -1}]
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LRSDL(**wrong).fit(*make_classes(2))

"""DL-COPAR: the objective is the paper's, every step lowers it, planes with a common part are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ddlcn.baselines import copar
from ddlcn.baselines.class_dictionaries import SHARED, start_dictionary
from ddlcn.baselines.copar import DLCOPAR

Array = NDArray[Any]


def make_classes(n_per_class: int, seed: int = 0, n_classes: int = 4, m: int = 40) -> Any:
    """Rows (n, m) in one plane per class, plus a stronger part that all classes share, plus noise; and classes."""
    rng = np.random.default_rng(7)  # the planes; `seed` draws the points
    planes, shared = rng.normal(size=(n_classes, 2, m)), rng.normal(size=(2, m))
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = np.einsum("nk,nkm->nm", rng.normal(size=(len(y), 2)), planes[y])
    X += 2 * rng.normal(size=(len(y), 2)) @ shared + 0.1 * rng.normal(size=(len(y), m))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def slow_objective(X: Array, y: Array, D: Array, labels: Array, Z: Array, alpha: float, eta: float) -> float:
    """The objective as the paper writes it, image by image and class by class."""
    total = 0.0
    for x, c, z in zip(X, y, Z, strict=True):
        own, common = labels == c, labels == SHARED
        total += ((x - z @ D) ** 2).sum() + ((x - z[own] @ D[own] - z[common] @ D[common]) ** 2).sum()
        total += (z[~own & ~common] ** 2).sum()
    for i in np.unique(labels):
        for j in np.unique(labels):
            if i != j:
                total += eta * ((D[labels == i] @ D[labels == j].T) ** 2).sum()
    return float(total / 2 + alpha * np.abs(Z).sum())


@pytest.fixture(params=[0, 2])
def problem(request: Any) -> Any:
    X, y = make_classes(5, n_classes=3, m=12)
    y = y[np.random.default_rng(1).permutation(len(y))]
    D, labels = start_dictionary(X, y, 3, request.param)
    return X, y, D, labels, np.random.default_rng(2).normal(size=(len(X), len(D))) * 0.1


def test_objective_is_the_papers(problem):
    X, y, D, labels, Z = problem
    assert copar.measure(X, y, D, labels, Z, 0.1, 0.3) == pytest.approx(slow_objective(X, y, D, labels, Z, 0.1, 0.3))


def test_every_step_lowers_the_objective(problem):
    X, y, D, labels, Z = problem
    last = np.inf
    for _ in range(6):
        Z = copar.code(X, y, D, labels, Z, 0.01, n_jobs=1)
        after_codes = copar.measure(X, y, D, labels, Z, 0.01, 0.2)
        D = copar.step_dictionary(X, y, D, labels, Z, 0.2)
        after_atoms = copar.measure(X, y, D, labels, Z, 0.01, 0.2)
        assert last >= after_codes >= after_atoms
        assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-12
        last = after_atoms


def test_codes_are_minima(problem):
    X, y, D, labels, Z = problem
    alpha = 0.02
    Z = copar.code(X, y, D, labels, Z, alpha, n_jobs=1)
    gradient = np.empty_like(Z)
    for i in range(len(Z)):
        for k in range(Z.shape[1]):
            step = np.zeros_like(Z)
            step[i, k] = 1e-5
            up, down = (slow_objective(X, y, D, labels, Z + s, 0.0, 0.0) for s in (step, -step))
            gradient[i, k] = (up - down) / 2e-5
    assert np.abs(gradient[Z == 0]).max() <= 1.02 * alpha
    np.testing.assert_allclose(gradient[Z != 0], -alpha * np.sign(Z[Z != 0]), atol=0.02 * alpha)


def test_a_large_eta_keeps_dictionaries_apart():
    X, y = make_classes(10)
    alike = []
    for eta in (0.0, 1.0):
        model = DLCOPAR(2, 2, eta=eta, max_iter=30, tol=0.0).fit(X, y)
        D = model.dictionary_ / np.linalg.norm(model.dictionary_, axis=1, keepdims=True)
        alike.append(np.abs(D @ D.T)[model.atom_labels_[:, None] != model.atom_labels_].mean())
    assert alike[1] < 0.7 * alike[0]


@pytest.mark.parametrize("classify", ["local", "global"])
def test_tells_planes_with_a_common_part_apart(classify):
    X, y = make_classes(20)
    new, y_true = make_classes(20, seed=1)
    names = np.array(["a", "b", "c", "d"])
    model = DLCOPAR(2, 2, classify=classify).fit(X, names[y])
    assert (model.predict(new) == names[y_true]).mean() >= 0.95
    assert (np.diff(model.objective_) <= 0).all()
    assert (model.atom_labels_ == SHARED).sum() == 2


def test_few_and_empty_images():
    """One image per class, two classes, more atoms asked for than images, images of zeros."""
    X, y = make_classes(1, n_classes=2)
    model = DLCOPAR(9)
    assert (model.fit(X, y).predict(X) == y).all()
    X = np.concatenate([X, np.zeros((2, X.shape[1]))])
    assert np.isfinite(model.fit(X, [0, 1, 0, 1]).decision_function(X)).all()
    assert np.isfinite(model.fit(np.zeros((4, 3)), [0, 1, 0, 1]).decision_function(np.ones((2, 3)))).all()


@pytest.mark.parametrize(
    "wrong", [{"lambda1": 0}, {"eta": -1}, {"gamma": 0}, {"classify": "x"}, {"atoms_per_class": 0}, {"max_iter": 0}]
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DLCOPAR(**wrong).fit(*make_classes(2))

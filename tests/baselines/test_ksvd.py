"""K-SVD and its kin: updates that never raise the objective, published sums in fewer columns, easy data recognised."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize

from ddlcn.baselines import ksvd_learning as learning
from ddlcn.baselines.ksvd import DKSVD, KSVD, LCKSVD1, LCKSVD2
from ddlcn.coding.omp import encode_omp, pursue

METHODS = [KSVD, DKSVD, LCKSVD1, LCKSVD2]
SMALL = {"atoms_per_class": 4, "n_nonzero": 4, "max_iter": 5, "init_iter": 5, "random_state": 0}


@pytest.fixture
def sparse():
    """Items made of 3 of 16 atoms, in 20 dimensions, and a dictionary to start from."""
    rng = np.random.default_rng(1)
    atoms = normalize(rng.normal(size=(16, 20)))
    codes = rng.normal(size=(500, 16)) * (rng.random((500, 16)).argsort(axis=1) < 3)
    X = codes @ atoms
    return X, normalize(X[:16]), atoms


def update(X, D, n_nonzero):
    """Codes and one pass over the atoms: dictionary, dense codes and what they leave."""
    D, E = D.copy(), np.empty_like(X)
    columns, values, counts = pursue(X, D, D @ D.T, n_nonzero)
    learning._subtract(X, D, columns, values, counts, E)
    before = (E**2).sum()
    learning._update_atoms(X, E, D, columns, values, counts)
    Z = np.zeros((len(X), len(D)))
    for z, c, v, n in zip(Z, columns, values, counts, strict=True):
        z[c[:n]] = v[:n]
    return D, Z, E, before


def update_slowly(X, D, Z):
    """The same pass as Rubinstein et al. write it, from scratch for every atom."""
    D, Z = D.copy(), Z.copy()
    for j in range(len(D)):
        users = Z[:, j] != 0
        D[j] = 0
        left, g = X[users] - Z[users] @ D, Z[users, j]
        d = left.T @ g
        D[j] = d / np.linalg.norm(d)
        Z[users, j] = left @ D[j]
    return D, Z


def test_update_equals_the_slow_one(sparse):
    X, start, _ = sparse
    D, Z, E, _ = update(X, start, 3)
    slow_D, slow_Z = update_slowly(X, start, encode_omp(X, start, 3).toarray())
    assert_allclose(D, slow_D, atol=1e-10)
    assert_allclose(Z, slow_Z, atol=1e-10)
    assert_allclose(E, X - Z @ D, atol=1e-12)  # what is left is kept up to date


def test_update_never_raises_the_objective(sparse):
    X, D, _ = sparse
    for _ in range(10):
        D, Z, E, before = update(X, D, 3)
        assert (E**2).sum() <= before * (1 + 1e-12)
        assert_allclose(np.linalg.norm(D, axis=1), 1.0)
        assert (np.count_nonzero(Z, axis=1) <= 3).all()


def test_finds_the_atoms_that_made_the_data(sparse):
    X, start, atoms = sparse
    D, objective = learning.learn_ksvd(X, start, 3, 60)
    found = np.abs(atoms @ D.T).max(axis=1) > 0.99
    assert found.mean() >= 0.8
    assert objective[-1] < 0.2 * objective[0]


def test_perfect_dictionary_stays(sparse):
    X, _, atoms = sparse
    D, objective = learning.learn_ksvd(encode_omp(X, atoms, 1) @ atoms, atoms, 1, 2)
    assert max(objective) < 1e-20
    assert_allclose(D, atoms, atol=1e-10)


def test_unused_atom_becomes_the_item_that_is_represented_worst():
    X = np.concatenate([np.repeat(np.eye(5)[:2], 5, axis=0), 3 * np.eye(5)[2:3]])
    D, objective = learning.learn_ksvd(X, np.eye(5)[[0, 1, 4]], 1, 2, n_jobs=1)
    assert_allclose(np.abs(D), np.eye(5)[:3], atol=1e-12)
    assert objective[0] == pytest.approx(9.0)
    assert objective[1] == pytest.approx(0.0)


def test_ridge_equals_scikit_learn(faces):
    X, y, _ = faces
    codes, targets = encode_omp(X, X[::5], 4), np.eye(3)[y]
    W = learning.fit_ridge(codes, targets, 0.3)
    assert_allclose(W, Ridge(0.3, fit_intercept=False).fit(codes.toarray(), targets).coef_, atol=1e-10)


@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 4, 1)])
def test_labels_alone_are_the_published_label_consistency(faces, sizes):
    """K-SVD of [X, sqrt(alpha) Q, sqrt(beta) H], as published, has the same atoms as ours without Q."""
    X, y, _ = faces
    alpha, beta, ridge = 0.02, 0.05, 0.1
    owner = np.repeat([0, 1, 2], sizes)
    start = np.concatenate([X[y == c][:p] for c, p in enumerate(sizes)])
    H, Q = np.eye(3)[y], (y[:, None] == owner).astype(float)

    codes = encode_omp(X, start, 3)
    A, W = learning.fit_ridge(codes, Q, ridge), learning.fit_ridge(codes, H, ridge)
    stacked = np.hstack([X, np.sqrt(alpha) * Q, np.sqrt(beta) * H])
    atoms = normalize(np.hstack([start, np.sqrt(alpha) * A.T, np.sqrt(beta) * W.T]))
    published, objective = learning.learn_ksvd(stacked, atoms, 3, 4)
    lengths = np.linalg.norm(published[:, :20], axis=1, keepdims=True)

    D, W, ours = learning.learn_with_labels(X, start, H, alpha * np.bincount(owner) + beta, 3, ridge, 4)
    assert_allclose(ours, objective, rtol=1e-9)
    assert_allclose(D, published[:, :20] / lengths, atol=1e-8)
    assert_allclose(W.T, published[:, -3:] / np.sqrt(beta) / lengths, atol=1e-7)


@pytest.mark.parametrize("Method", METHODS)
def test_recognises_mixtures(faces, Method):
    X, y, new = faces
    model = Method(**SMALL).fit(X, np.array(["a", "b", "c"])[y])
    assert model.score(new, np.array(["a", "b", "c"])[y]) > 0.9
    assert model.dictionary_.shape == (12, 20)
    assert_allclose(np.linalg.norm(model.dictionary_, axis=1), 1.0)
    assert_array_equal(model.atom_labels_, np.repeat([0, 1, 2], 4))
    assert model.coef_.shape == (3, 12)
    assert len(model.objective_) == model.n_iter_ == 5
    assert model.objective_[-1] < model.objective_[0]


@pytest.mark.parametrize("Method", METHODS)
def test_same_seed_same_result_on_any_number_of_threads(faces, Method):
    X, y, new = faces
    one = Method(**SMALL, n_jobs=1).fit(X, y)
    assert_array_equal(one.decision_function(new), Method(**SMALL, n_jobs=2).fit(X, y).decision_function(new))
    other = Method(**{**SMALL, "random_state": 1}).fit(X, y)
    assert not np.array_equal(one.dictionary_, other.dictionary_)


@pytest.mark.parametrize("Method", METHODS)
def test_length_of_images_does_not_matter(faces, Method):
    X, y, new = faces
    scores = Method(**SMALL).fit(X, y).decision_function(new)
    scaled = Method(**SMALL).fit(8.0 * X, y).decision_function(0.5 * new)
    assert_allclose(scaled, scores, atol=1e-8)


@pytest.mark.parametrize("Method", METHODS)
def test_few_and_empty_images(Method):
    """One image per class, fewer images than atoms, and images of zeros."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 6))
    assert_array_equal(Method(random_state=0).fit(X, [0, 1]).predict(X), [0, 1])

    X = np.concatenate([rng.normal(size=(3, 6)), np.zeros((4, 6))])
    model = Method(random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 2])
    assert_array_equal(np.bincount(model.atom_labels_), [2, 1, 1])  # class 2 is nothing but zeros
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(Method(random_state=0).fit(np.zeros((4, 6)), [0, 0, 1, 1]).decision_function(X)).all()


@pytest.mark.parametrize(
    ("Method", "name", "value"),
    [
        (KSVD, "atoms_per_class", 0),
        (KSVD, "n_nonzero", 0),
        (KSVD, "ridge", 0.0),
        (KSVD, "max_iter", 0),
        (KSVD, "init_iter", -1),
        (DKSVD, "beta", 0.0),
        (LCKSVD1, "alpha", -1.0),
        (LCKSVD2, "alpha", 0.0),
        (LCKSVD2, "beta", -1.0),
    ],
)
def test_bad_parameters_are_named(faces, Method, name, value):
    X, y, _ = faces
    with pytest.raises(ValueError, match=name):
        Method(**{**SMALL, name: value}).fit(X, y)

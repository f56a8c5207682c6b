"""SupGraphDL: steps that never raise the objective and solve their problems, graphs that are graphs, easy data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.preprocessing import normalize

from ddlcn.baselines import graph_ksvd as graphs
from ddlcn.baselines.graph_ksvd import SupGraphDL
from ddlcn.coding.omp import encode_omp

SMALL = {"atoms_per_class": 4, "n_nonzero": 4, "max_iter": 8, "init_iter": 3, "random_state": 0}


@pytest.fixture
def problem(faces):
    """X, D, Z and the images' Laplacian, with a weight that is felt."""
    X, y, _ = faces
    D = normalize(X[::5] + 0.3 * np.random.default_rng(1).normal(size=(12, 20)))
    return X, D, encode_omp(X, D, 4).toarray(), 0.5 * graphs.link_images(X, y, 3)


def cost(X, D, Z, M, curves=0.0):
    return ((X - Z @ D) ** 2).sum() + ((M @ Z) * Z).sum() + (curves * D**2).sum()


@pytest.mark.parametrize("weights", [{}, {"alpha": 0.0}, {"beta": 0.0, "gamma": 0.0}, {"alpha": 0.5, "beta": 1.0}])
def test_the_objective_falls(faces, weights):
    X, y, _ = faces
    model = SupGraphDL(**SMALL, **weights).fit(X, y)
    assert len(model.objective_) == model.n_iter_ == 8
    assert (np.diff(model.objective_) <= 1e-9 * model.objective_[0]).all()


def test_the_graph_of_images_links_the_nearest_of_a_class(faces):
    X, y, _ = faces
    M = graphs.link_images(X, y, 3)
    assert_allclose(M, M.T)
    assert_allclose(M.sum(axis=1), 0.0, atol=1e-12)
    assert (M[y[:, None] != y] == 0).all()
    nearest = np.argsort(-(X[:20] @ X[7]))[1:4]  # of class 0; the first is itself
    assert (M[7, nearest] < 0).all()
    assert M[7, 7] >= 0.5


def test_atoms_and_codes_never_raise_what_they_lower(problem):
    X, D, Z, M = problem
    curves = np.linspace(0.0, 2.0, 20)
    for _ in range(6):
        before = cost(X, D, Z, M, curves)
        graphs.code_images(X, D, Z, M, 4)
        between = cost(X, D, Z, M, curves)
        assert (np.count_nonzero(Z, axis=1) <= 4).all()
        graphs.update_atoms(X, D, Z, M, curves)
        assert cost(X, D, Z, M, curves) <= between * (1 + 1e-12)
        assert between <= before * (1 + 1e-12)
        assert_allclose(np.linalg.norm(D, axis=1), 1.0)


def test_codes_of_an_atom_are_at_their_minimum(problem):
    X, D, Z, M = problem
    graphs.update_atoms(X, D, Z, M, np.zeros(20))
    slope = 2 * (Z @ D - X) @ D[-1] + 2 * M @ Z[:, -1]  # of the last atom updated
    assert_allclose(slope[Z[:, -1] != 0], 0.0, atol=1e-10)


def test_without_graphs_codes_are_those_of_matching_pursuit(problem):
    X, D, Z, M = problem
    Z[:] = 0.0
    graphs.code_images(X, D, Z, 0.0 * M, 4)
    assert_allclose(Z, encode_omp(X, D, 4).toarray(), atol=1e-10)


def test_a_heavy_graph_makes_codes_of_a_class_alike(faces):
    X, y, _ = faces

    def spread(beta):
        M = graphs.link_images(X, y, 19)
        Z = encode_omp(X, normalize(X[::5]), 4).toarray()
        for _ in range(5):
            graphs.code_images(X, normalize(X[::5]), Z, beta * M, 4)
        return sum(Z[y == c].var(axis=0).sum() for c in range(3))

    assert spread(50.0) < 0.2 * spread(0.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_sphere_is_solved(seed):
    rng = np.random.default_rng(seed)
    g, curves = rng.normal(size=6), rng.random(6) * 10.0**seed
    d = graphs.solve_sphere(g, curves, np.ones(6))
    assert np.linalg.norm(d) == pytest.approx(1.0)

    def value(x):
        return curves @ (x / np.linalg.norm(x)) ** 2 - 2 * g @ x / np.linalg.norm(x)

    found = min(minimize(value, rng.normal(size=6)).fun for _ in range(5))
    assert value(d) <= found + 1e-7 * abs(found)


def test_the_sphere_without_curves_is_a_direction_and_without_a_pull_the_old_atom():
    g = np.array([3.0, -4.0])
    assert_allclose(graphs.solve_sphere(g, np.zeros(2), g), [0.6, -0.8])
    assert_allclose(graphs.solve_sphere(np.zeros(2), np.ones(2), g), g)


def test_the_graph_of_features_is_a_laplacian_and_the_best():
    rng = np.random.default_rng(4)
    base = rng.normal(size=(30, 3))
    D = np.repeat(base, 2, axis=1) + 0.1 * rng.normal(size=(30, 6))  # features in three pairs
    L = graphs.learn_graph(D, 0.8, np.zeros((6, 6)))
    assert_allclose(L, L.T, atol=1e-12)
    assert_allclose(L.sum(axis=1), 0.0, atol=1e-10)
    assert np.trace(L) == pytest.approx(6.0)
    assert (L[~np.eye(6, dtype=bool)] <= 1e-12).all()
    assert (L[[0, 2, 4], [1, 3, 5]] < -0.9).all()  # the pairs, and nearly nothing else

    def value(L):
        return np.trace(D @ L @ D.T) + 0.8 * (L**2).sum()

    for _ in range(200):  # no other graph is better
        A = np.abs(rng.normal(size=(6, 6))) * (rng.random((6, 6)) < 0.3)
        A = (A + A.T) * ~np.eye(6, dtype=bool)
        if A.any():
            A *= 6.0 / A.sum()
            for t in (0.01, 0.3, 1.0):
                assert value(L) <= value((1 - t) * L + t * (np.diag(A.sum(axis=1)) - A)) + 1e-6


def test_the_simplex_keeps_what_is_on_it_and_projects_the_rest():
    assert_allclose(graphs.project_simplex(np.array([0.2, 0.8, 0.0]), 1.0), [0.2, 0.8, 0.0])
    v = np.random.default_rng(5).normal(size=50)
    p = graphs.project_simplex(v, 3.0)
    assert p.sum() == pytest.approx(3.0)
    assert (p >= 0).all()
    assert_allclose(np.ptp((v - p)[p > 0]), 0.0, atol=1e-12)  # all lowered by the same
    assert (v[p == 0] <= (v - p)[p > 0][0] + 1e-12).all()


def test_recognises_mixtures(faces):
    X, y, new = faces
    names = np.array(["a", "b", "c"])
    model = SupGraphDL(**SMALL).fit(X, names[y])
    assert model.score(new, names[y]) > 0.9
    assert model.dictionary_.shape == (12, 20)
    assert model.coef_.shape == (3, 12)
    assert model.laplacian_.shape == (20, 20)
    assert not SupGraphDL(**SMALL, alpha=0.0).fit(X, y).laplacian_.any()


def test_a_graph_of_features_makes_atoms_smooth_over_it(faces):
    X, y, _ = faces
    plain, smooth = (SupGraphDL(**SMALL, alpha=alpha).fit(X, y) for alpha in (1e-6, 1.0))
    rough = [((model.dictionary_ @ model.laplacian_) * model.dictionary_).sum() for model in (plain, smooth)]
    assert rough[1] < 0.8 * rough[0]


def test_same_seed_same_result_on_any_number_of_threads(faces):
    X, y, new = faces
    one = SupGraphDL(**SMALL, n_jobs=1).fit(X, y)
    assert_array_equal(one.decision_function(new), SupGraphDL(**SMALL, n_jobs=2).fit(X, y).decision_function(new))


def test_few_and_empty_images():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 6))
    assert_array_equal(SupGraphDL(random_state=0).fit(X, [0, 1]).predict(X), [0, 1])
    X = np.concatenate([rng.normal(size=(3, 6)), np.zeros((4, 6))])
    model = SupGraphDL(random_state=0).fit(X, [0, 0, 1, 1, 2, 2, 2])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(SupGraphDL(random_state=0).fit(np.zeros((4, 6)), [0, 0, 1, 1]).decision_function(X)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("atoms_per_class", 0),
        ("n_nonzero", 0),
        ("alpha", -1.0),
        ("beta", -1.0),
        ("gamma", -1.0),
        ("ridge", 0.0),
        ("mu", 0.0),
        ("n_neighbors", 0),
        ("max_iter", 0),
        ("init_iter", -1),
    ],
)
def test_bad_parameters_are_named(faces, name, value):
    X, y, _ = faces
    with pytest.raises(ValueError, match=name):
        SupGraphDL(**{**SMALL, name: value}).fit(X, y)

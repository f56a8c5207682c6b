"""The l1-ball coder against its optimality conditions, recomputed in float64, and against a slow solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlcn.engines.cpu.atom_update import add_statistics, update_block
from ddlcn.engines.cpu.l1_ball import code_l1_ball, code_tolerance


def code(X, V, radius, gap_tol=0.0):
    """Dense codes (n, atoms), the explained part (n,), and how many walks hit the cap."""
    n, width = len(X), min(V.shape)
    indptr, indices = np.empty(n + 1, np.int64), np.empty(n * width, np.int32)
    values, explained = np.empty(n * width), np.empty(n)
    out = indptr, indices, values, explained
    unfinished = code_l1_ball(V @ V.T, X @ V.T, radius, code_tolerance(V.dtype), gap_tol, *out)
    Z = np.zeros((n, len(V)))
    for i in range(n):
        support = indices[indptr[i] : indptr[i + 1]]
        assert len(set(support.tolist())) == len(support)
        Z[i, support] = values[indptr[i] : indptr[i + 1]]
    return Z, explained, unfinished


def kkt_violation(X, V, Z, radius):
    """Largest violation of the optimality conditions per descriptor, relative to its largest correlation."""
    X, V = X.astype(np.float64), V.astype(np.float64)
    c = (X - Z @ V) @ V.T
    norm = np.abs(Z).sum(axis=1)
    scale = np.maximum(np.abs(X @ V.T).max(axis=1), 1e-300)
    worst = np.maximum(norm - radius, 0.0) / radius
    for i in range(len(X)):
        largest = np.abs(c[i]).max()
        if norm[i] < radius * (1 - 1e-6):  # inside the ball: a least-squares solution
            worst[i] = max(worst[i], largest / scale[i])
        else:  # on its surface: every used atom has the largest correlation, with the sign of its coefficient
            used = Z[i] != 0
            worst[i] = max(worst[i], np.max(largest - c[i, used] * np.sign(Z[i, used])) / scale[i])
    return worst


def project_on_l1_ball(a, radius):
    if np.abs(a).sum() <= radius:
        return a
    ordered = np.sort(np.abs(a))[::-1]
    sums = np.cumsum(ordered) - radius
    last = np.flatnonzero(ordered * np.arange(1, a.size + 1) > sums)[-1]
    return np.sign(a) * np.maximum(np.abs(a) - sums[last] / (last + 1), 0.0)


def slow_codes(X, V, radius, steps=20000):
    """Accelerated projected gradient, one descriptor after the other."""
    G, rate = V @ V.T, 1.0 / np.linalg.norm(V @ V.T, 2)
    Z = np.zeros((len(X), len(V)))
    for i, h in enumerate(X @ V.T):
        a, y, t = Z[i], Z[i], 1.0
        for _ in range(steps):
            new = project_on_l1_ball(y - rate * (y @ G - h), radius)
            if np.abs(new - y).max() < 1e-13:
                break
            following = (1 + np.sqrt(1 + 4 * t * t)) / 2
            y, a, t = new + (t - 1) / following * (new - a), new, following
        Z[i] = a
    return Z


def objective(X, V, Z):
    return 0.5 * ((X - Z @ V) ** 2).sum(axis=1)


def random_problem(rng, n, n_atoms, m):
    V = rng.standard_normal((n_atoms, m))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    X = rng.standard_normal((n, m))
    return X / np.linalg.norm(X, axis=1, keepdims=True), V


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_atoms", "m", "radius"),
    [(15, 128, 0.35), (512, 128, 0.35), (40, 16, 1.5), (60, 8, 100.0), (1, 5, 0.2)],
)
def test_codes_are_optimal(dtype, n_atoms, m, radius):
    X, V = random_problem(np.random.default_rng(0), 300, n_atoms, m)
    X, V = X.astype(dtype), V.astype(dtype)
    Z, explained, unfinished = code(X, V, radius)
    assert unfinished == 0
    assert kkt_violation(X, V, Z, radius).max() < (2e-5 if dtype == np.float32 else 1e-9)
    X, V = X.astype(np.float64), V.astype(np.float64)
    expected = 0.5 * (X**2).sum(axis=1) - objective(X, V, Z)
    np.testing.assert_allclose(explained, expected, atol=1e-6 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("radius", [0.3, 1.0, 5.0])
def test_agrees_with_projected_gradient(radius):
    X, V = random_problem(np.random.default_rng(1), 10, 20, 12)
    Z, _, _ = code(X, V, radius)
    slow = slow_codes(X, V, radius)
    np.testing.assert_allclose(objective(X, V, Z), objective(X, V, slow), atol=1e-9)
    assert np.all(objective(X, V, Z) <= objective(X, V, slow) + 1e-12)


def test_inside_the_ball_it_is_least_squares():
    X, V = random_problem(np.random.default_rng(2), 20, 6, 30)
    Z, _, _ = code(X, V, 1e6)
    np.testing.assert_allclose(Z, np.linalg.lstsq(V.T, X.T, rcond=None)[0].T, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gap_tol", [1e-3, 1e-5, 1e-8])
def test_ends_within_gap_tol_of_the_minimum(dtype, gap_tol):
    rng = np.random.default_rng(4)
    X, V = random_problem(rng, 400, 150, 32)
    X *= 10.0 ** rng.uniform(-4, 0, (400, 1))
    X, V = X.astype(dtype), V.astype(dtype)
    exact, _, _ = code(X, V, 0.35)
    Z, explained, unfinished = code(X, V, 0.35, gap_tol)
    X, V = X.astype(np.float64), V.astype(np.float64)
    rounding = 1e-6 if dtype == np.float32 else 1e-12
    assert unfinished == 0
    assert np.abs(Z).sum(axis=1).max() <= 0.35 * (1 + 1e-6)
    assert (objective(X, V, Z) - objective(X, V, exact)).max() <= gap_tol + rounding
    np.testing.assert_allclose(explained, 0.5 * (X**2).sum(axis=1) - objective(X, V, Z), atol=rounding)
    # What it is for: a descriptor far inside the ball is not taken apart to the last digit...
    short = np.linalg.norm(X, axis=1) < 1e-3
    assert np.count_nonzero(exact[short], axis=1).min() >= 30
    if gap_tol >= 1e-5:
        assert np.count_nonzero(Z[short]) < 0.8 * np.count_nonzero(exact[short])
    # ... and one that reaches its surface has the code that it always had.
    outside = np.abs(exact).sum(axis=1) > 0.35 * (1 - 1e-9)
    assert outside.sum() > 50
    if gap_tol <= 1e-5:
        np.testing.assert_array_equal(Z[outside], exact[outside])


def test_signs_of_negative_descriptors():
    X, V = random_problem(np.random.default_rng(3), 20, 15, 10)
    np.testing.assert_allclose(code(X, V, 0.7)[0], -code(-X, V, 0.7)[0], atol=1e-12)


def test_zero_descriptor_and_zero_atoms_have_zero_codes():
    X, V = random_problem(np.random.default_rng(4), 5, 6, 4)
    X[2] = 0.0
    V[[0, 3]] = 0.0
    Z, explained, unfinished = code(X, V, 0.5)
    assert unfinished == 0
    assert not Z[2].any()
    assert explained[2] == 0.0
    assert not Z[:, [0, 3]].any()
    assert not code(X, np.zeros_like(V), 0.5)[0].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicate_atoms_cost_nothing(dtype):
    X, V = random_problem(np.random.default_rng(5), 100, 12, 10)
    X, V = X.astype(dtype), V.astype(dtype)
    doubled = np.concatenate([V, V, -V])
    Z, _, unfinished = code(X, doubled, 0.8)
    assert unfinished == 0
    single = code(X, V, 0.8)[0]
    np.testing.assert_allclose(objective(X, doubled, Z), objective(X, V, single), atol=1e-6)


def test_the_walk_lets_atoms_leave():
    # The third atom has the largest correlation and enters first; the solution wants it negative.
    V = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.8, 0.8, 0.1]])
    X = np.array([[1.0, 0.9, -0.5]])
    assert (X @ V.T).argmax() == 2
    shares = [code(X, V, radius)[0][0, 2] for radius in (0.5, 20.0)]
    assert shares[0] > 0 > shares[1]
    for radius in (0.5, 1.0, 1.5, 1.9, 2.5, 20.0):
        Z, _, unfinished = code(X, V, radius)
        assert unfinished == 0
        assert kkt_violation(X, V, Z, radius).max() < 1e-9


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_atoms=st.integers(1, 40),
    m=st.integers(1, 20),
    duplicates=st.integers(0, 6),
    zeros=st.integers(0, 3),
    near=st.booleans(),
    coarse=st.booleans(),
    radius=st.sampled_from([1e-3, 0.35, 1.0, 10.0, 1e4]),
)
def test_any_shape_of_dictionary(seed, n_atoms, m, duplicates, zeros, near, coarse, radius):
    rng = np.random.default_rng(seed)
    X, V = random_problem(rng, 4, n_atoms, m)
    if coarse:  # small integers: exact ties everywhere
        X, V = np.round(2 * X), np.round(2 * V)
    if near:  # atoms that are almost duplicates
        V = np.concatenate([V, V[:5] + 1e-3 * rng.standard_normal(V[:5].shape)])
    V = np.concatenate([V, V[rng.integers(0, n_atoms, duplicates)], np.zeros((zeros, m))])
    X = np.concatenate([X, np.zeros((1, m)), V[:1]])
    Z, explained, unfinished = code(X, V, radius)
    assert unfinished == 0
    assert np.isfinite(Z).all()
    assert np.isfinite(explained).all()
    assert kkt_violation(X, V, Z, radius).max() < 1e-3


def test_statistics_are_the_products_of_the_codes():
    X, V = random_problem(np.random.default_rng(6), 50, 8, 10)
    indptr, indices, values = np.empty(51, np.int64), np.empty(400, np.int32), np.empty(400)
    code_l1_ball(V @ V.T, X @ V.T, 0.5, 1e-14, 0.0, indptr, indices, values, np.empty(50))
    Z, _, _ = code(X, V, 0.5)
    A, B = np.zeros((8, 8)), np.zeros((8, 10))
    add_statistics(X, indptr, indices, values, 2.0, A, B)
    np.testing.assert_allclose(A, 2.0 * Z.T @ Z, atol=1e-12)
    np.testing.assert_allclose(B, 2.0 * Z.T @ X, atol=1e-12)


def test_update_block_is_coordinate_descent_in_the_unit_ball():
    rng = np.random.default_rng(7)
    Z, X = rng.standard_normal((30, 5)), rng.standard_normal((30, 4))
    A, B = Z.T @ Z, Z.T @ X
    V = 0.1 * rng.standard_normal((5, 4))
    expected = V.copy()
    for j in range(5):
        moved = expected[j] + (B[j] - A[j] @ expected) / A[j, j]
        expected[j] = moved / max(1.0, np.linalg.norm(moved))
    update_block(V, B - A @ V, A, 0, 0.0)
    np.testing.assert_allclose(V, expected, atol=1e-12)
    still = V.copy()
    update_block(V, B - A @ V, A, 0, 1e9)  # everything counts as unused
    np.testing.assert_array_equal(V, still)

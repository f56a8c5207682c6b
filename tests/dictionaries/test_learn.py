"""Learning one dictionary: properties, odd inputs, and a rival on the same start."""

import dataclasses

import numpy as np
import pytest

from ddlcn.dictionaries import DictionaryResult, learn_dictionary
from ddlcn.dictionaries.learn import _replace_dead
from ddlcn.engines.cpu.l1_ball import code_l1_ball, code_tolerance
from ddlcn.utils.validation import seed_sequence


def objective(X, V, radius):
    """Mean of 1/2 ||x - a V||^2 at exact codes, by the float64 coder and an explicit residual."""
    X, V = X.astype(np.float64), V.astype(np.float64)
    n, width = len(X), min(V.shape)
    indptr, indices, values = np.empty(n + 1, np.int64), np.empty(n * width, np.int32), np.empty(n * width)
    code_l1_ball(V @ V.T, X @ V.T, radius, code_tolerance(V.dtype), 0.0, indptr, indices, values, np.empty(n))
    used = indptr[-1]
    Z = np.zeros((n, len(V)))
    Z[np.repeat(np.arange(n), np.diff(indptr)), indices[:used]] = values[:used]
    return 0.5 * ((X - Z @ V) ** 2).sum() / n


def descriptors(n, m=32, n_sources=40, seed=0):
    """Non-negative unit vectors, each near a mixture of two of `n_sources` directions: SIFT-like."""
    rng = np.random.default_rng(seed)
    sources = np.maximum(rng.standard_normal((n_sources, m)), 0.0)
    pairs = rng.integers(0, n_sources, (n, 2))
    X = sources[pairs[:, 0]] + rng.random((n, 1)) * sources[pairs[:, 1]]
    X += 0.2 * np.abs(rng.standard_normal((n, m)))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def assert_proper(result, n_atoms, m):
    assert result.atoms.shape == (n_atoms, m)
    assert result.atoms.flags.c_contiguous
    assert np.isfinite(result.atoms).all()
    assert np.linalg.norm(result.atoms.astype(np.float64), axis=1).max() <= 1.0 + 1e-6
    assert np.isfinite(result.objective).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objective_decreases_and_is_the_objective(dtype):
    X = descriptors(3000).astype(dtype)
    before = X.copy()
    result = learn_dictionary(X, 20, random_state=0)
    assert_proper(result, 20, 32)
    assert result.atoms.dtype == dtype
    np.testing.assert_array_equal(X, before)
    assert result.objective[-1] < 0.95 * result.objective[0]
    assert np.all(np.diff(result.objective) < 1e-4)
    assert result.objective[-1] == pytest.approx(objective(X, result.atoms, 0.35), rel=1e-5)


def test_flat_patches_cost_a_large_dictionary_nothing():
    """Descriptors far shorter than the radius: coded to a gap that the objective cannot show."""
    X = descriptors(2000)
    X[::2] *= 10.0 ** np.random.default_rng(1).uniform(-4, -2, (1000, 1)).astype(np.float32)
    result = learn_dictionary(X, 150, max_iter=50, random_state=0)
    assert_proper(result, 150, 32)
    assert result.objective[-1] < result.objective[0]
    exact = objective(X, result.atoms, 0.35)
    energy = 0.5 * (X.astype(np.float64) ** 2).sum() / len(X)
    assert -1e-7 < result.objective[-1] - exact < 1e-5 * energy + 1e-7


def test_result_is_frozen():
    result = learn_dictionary(descriptors(50), 3, max_iter=2, random_state=0)
    assert isinstance(result, DictionaryResult)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.n_iter = 3


def test_same_seed_same_result():
    X = descriptors(1500)
    first, again, other = (learn_dictionary(X, 10, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.atoms, again.atoms)
    np.testing.assert_array_equal(first.objective, again.objective)
    assert not np.array_equal(first.atoms, other.atoms)


def test_random_states_of_every_kind():
    sequence = np.random.SeedSequence(5)
    assert seed_sequence(5).entropy == seed_sequence(sequence).entropy == 5
    seed_sequence(sequence).spawn(3)
    assert sequence.n_children_spawned == 0
    generator = np.random.default_rng(5)
    assert seed_sequence(generator).entropy != seed_sequence(generator).entropy
    assert isinstance(seed_sequence(np.random.RandomState(5)).entropy, int)
    assert seed_sequence(None).entropy != seed_sequence(None).entropy


def test_stops_by_tolerance_or_by_max_iter():
    X = descriptors(2000)
    capped = learn_dictionary(X, 10, tol=0.0, max_iter=7, batch_size=100, random_state=0)
    assert (capped.n_iter, capped.converged) == (7, False)
    loose = learn_dictionary(X, 10, tol=0.5, batch_size=100, random_state=0)
    assert loose.converged
    assert loose.n_iter < 500
    # 20 mini-batches a pass, checked once a pass: start, passes, end.
    assert loose.objective.size == loose.n_iter // 20 + 2


def test_warm_start_is_no_worse_than_its_start():
    X = descriptors(2000)
    good = learn_dictionary(X, 15, random_state=0).atoms
    again = learn_dictionary(X, 15, init=good, max_iter=3, batch_size=20, random_state=1)
    assert again.objective[0] == pytest.approx(objective(X, good, 0.35), rel=1e-5)
    assert again.objective[-1] <= again.objective[0]
    assert objective(X, again.atoms, 0.35) <= objective(X, good, 0.35) * (1 + 1e-6)


def test_warm_start_with_fewer_and_longer_atoms():
    X = descriptors(500)
    init = 5.0 * X[:4]
    result = learn_dictionary(X, 10, init=init, max_iter=1, random_state=0)
    assert_proper(result, 10, 32)
    np.testing.assert_array_equal(init, 5.0 * X[:4])


def test_dead_atoms_come_back_to_life():
    X = descriptors(1000)
    init = np.zeros((8, 32))
    init[:2] = X[:2]
    result = learn_dictionary(X, 8, init=init, random_state=0)
    assert np.linalg.norm(result.atoms, axis=1).min() > 0.5
    two = learn_dictionary(X, 2, init=init[:2], random_state=0)
    assert result.objective[-1] < 0.95 * two.objective[-1]


def test_revive_takes_the_worst_reconstructed_and_different_ones():
    batch = np.array([[2.0, 0.0], [0.0, 4.0], [0.0, 4.0], [0.0, 0.0]], np.float32)
    V = np.full((4, 2), 0.1, np.float32)
    _replace_dead(V, np.array([1, 2, 3]), batch, np.array([1.0, 5.0, 5.0, 0.0]))
    np.testing.assert_allclose(V, [[0.1, 0.1], [0.0, 1.0], [1.0, 0.0], [0.1, 0.1]])


@pytest.mark.parametrize(
    ("X", "n_atoms"),
    [
        (descriptors(5), 12),
        (descriptors(1), 1),
        (descriptors(1), 4),
        (descriptors(200), 1),
        (np.zeros((30, 6)), 4),
        (np.repeat(descriptors(2), 20, axis=0), 7),
        (np.vstack([np.zeros((40, 32)), descriptors(3)]), 5),
        (-descriptors(100), 6),
        (np.arange(12).reshape(6, 2), 3),
        (descriptors(50)[:, :1], 3),
        (1e150 * descriptors(60).astype(np.float64), 5),
        (1e-200 * descriptors(60).astype(np.float64), 5),
    ],
)
def test_odd_inputs(X, n_atoms):
    result = learn_dictionary(X, n_atoms, max_iter=40, random_state=0)
    assert_proper(result, n_atoms, X.shape[1])
    assert result.objective[-1] <= result.objective[0]
    if n_atoms >= 4:
        assert len(np.unique(result.atoms, axis=0)) > 1


def test_units_do_not_matter():
    X = descriptors(400).astype(np.float64)
    plain = learn_dictionary(X, 6, 0.35, max_iter=60, random_state=0)
    large = learn_dictionary(X * 2.0**40, 6, 0.35 * 2.0**40, max_iter=60, random_state=0)
    np.testing.assert_allclose(plain.atoms, large.atoms, atol=1e-3)
    assert large.objective[-1] == pytest.approx(plain.objective[-1] * 2.0**80, rel=1e-3)


def test_large_radius_finds_the_subspace():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 10))
    result = learn_dictionary(X, 3, 1e3, tol=0.0, random_state=0)
    assert result.objective[-1] < 1e-4 * 0.5 * (X**2).sum(axis=1).mean()


@pytest.mark.parametrize(("n_atoms", "n"), [(15, 6000), (60, 4000)])
def test_reaches_what_spams_reaches_from_the_same_start(n_atoms, n):
    spams = pytest.importorskip("spams")
    X = descriptors(n, m=64, n_sources=100)
    start = X[np.random.default_rng(0).choice(n, n_atoms, replace=False)]
    ours = learn_dictionary(X, n_atoms, init=start, random_state=0).atoms
    theirs = spams.trainDL(
        np.asfortranarray(X.T), D=np.asfortranarray(start.T), K=n_atoms, lambda1=0.35, mode=0, iter=500,
        batchsize=512, numThreads=1, verbose=False,
    ).T  # fmt: skip
    before = objective(X, start, 0.35)
    assert before - objective(X, ours, 0.35) >= 0.98 * (before - objective(X, theirs, 0.35)) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": []}, "X must be 2-D"),
        ({"X": np.zeros((0, 3))}, "X is empty"),
        ({"X": [[np.nan, 1.0]]}, "X contains NaN or infinity"),
        ({"X": [["a"]]}, "X must hold numbers"),
        ({"n_atoms": 0}, "n_atoms must be a whole number of at least 1; got 0"),
        ({"n_atoms": 2.5}, "n_atoms must be a whole number"),
        ({"l1_radius": 0.0}, "l1_radius must be a number above 0; got 0.0"),
        ({"l1_radius": np.inf}, "l1_radius must be a number above 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
        ({"init": np.zeros((1, 5))}, "init has rows of width 5 where 3 is needed"),
        ({"init": np.zeros((4, 3))}, "init has 4 atoms, more than n_atoms=2: pass at most n_atoms rows"),
        ({"random_state": "seed"}, "random_state must be a whole number of at least 0; got 'seed'"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        learn_dictionary(**({"X": np.ones((4, 3)), "n_atoms": 2} | arguments))

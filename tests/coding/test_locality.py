"""The locality coder against its optimality conditions, recomputed in float64, and against another QP solver."""

import inspect
import io
import zipfile

import clarabel
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import sparse

from ddlcn import DDLCNClassifier, DDLCNEncoder
from ddlcn.coding import encode
from ddlcn.coding.locality import MAX_TABLE_ATOMS
from ddlcn.descriptors import DenseSIFT
from tests.coding.exact_optimum import exact_optimum

EPS = np.finfo(np.float64).eps


def squared_distances(x, D):
    """(atoms,), from differences in float64."""
    return ((D.astype(np.float64) - x.astype(np.float64)) ** 2).sum(axis=1)


def problem(x, D, beta, n_neighbors):
    """What is to be solved for one descriptor: indices (k,), atoms less x (k, m), weights (k,)."""
    d2 = squared_distances(x, D)
    indices = np.arange(len(D))
    if n_neighbors is not None:
        indices = np.sort(np.argsort(d2, kind="stable")[:n_neighbors])
    return indices, D[indices].astype(np.float64) - x.astype(np.float64), beta * np.sqrt(d2[indices])


def certificate(x, D, z, beta, n_neighbors=None):
    """The contract's certificate, slowly; and what rounding alone makes of it in float64."""
    indices, R, w = problem(x, D, beta, n_neighbors)
    z = z[indices]
    g = R @ (z @ R)
    used = z != 0
    nu = (g + w * np.sign(z))[used].mean()
    violation = np.where(used, np.abs(g + w * np.sign(z) - nu), np.maximum(np.abs(g - nu) - w, 0.0)).max()
    scale = w.max() if w.max() > 0 else 1.0
    return violation / scale, EPS * np.abs(z).sum() * (R**2).sum(axis=1).max() / scale


def objective(x, D, z, beta):
    residual = x.astype(np.float64) - z @ D.astype(np.float64)
    return 0.5 * residual @ residual + beta * np.sqrt(squared_distances(x, D)) @ np.abs(z)


def solve_by_clarabel(x, D, beta, n_neighbors):
    """The objective at the optimum, by an interior point method: z = p - n with p, n >= 0."""
    indices, R, w = problem(x, D, beta, n_neighbors)
    k = len(indices)
    C = R @ R.T
    quadratic = sparse.csc_matrix(np.triu(np.block([[C, -C], [-C, C]])))
    sums = np.concatenate([np.ones(k), -np.ones(k)])[None]
    constraints = sparse.csc_matrix(np.vstack([sums, -np.eye(2 * k)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * k)]
    right = np.concatenate([[1.0], np.zeros(2 * k)])
    solution = clarabel.DefaultSolver(quadratic, np.concatenate([w, w]), constraints, right, cones, settings).solve()
    return solution.obj_val


def make(seed, n=40, atoms=60, m=16, dtype=np.float64):
    """Descriptors (n, m) and unit atoms (atoms, m), as far from each other as SIFT descriptors are."""
    rng = np.random.default_rng(seed)
    X, D = np.abs(rng.normal(size=(n, m))), np.abs(rng.normal(size=(atoms, m)))
    X, D = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, D))
    return X.astype(dtype), D.astype(dtype)


@pytest.mark.parametrize("n_neighbors", [1, 5, 15, 33, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("beta", [0.0, 1e-4, 0.02, 0.3])
def test_certificate_is_true(n_neighbors, dtype, beta):
    X, D = make(0, dtype=dtype)
    result = encode(X, D, beta=beta, n_neighbors=n_neighbors)
    Z = result.codes.toarray()
    recomputed = np.array([certificate(x, D, z, beta, n_neighbors)[0] for x, z in zip(X, Z, strict=True)])
    np.testing.assert_allclose(result.kkt, recomputed, atol=1e-10)
    assert result.kkt.max() < 1e-9
    assert result.converged
    np.testing.assert_allclose(Z.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("n_neighbors", [1, 4, 15, 33])
def test_support_lies_in_the_nearest(n_neighbors):
    X, D = make(1, n=200, atoms=300)
    codes = encode(X, D, n_neighbors=n_neighbors).codes
    for i, x in enumerate(X):
        nearest = np.argsort(squared_distances(x, D), kind="stable")[:n_neighbors]
        assert set(codes.indices[codes.indptr[i] : codes.indptr[i + 1]]) <= set(nearest)


@pytest.mark.parametrize("n_neighbors", [15, None])
@pytest.mark.parametrize("beta", [1e-4, 0.02, 0.2])
def test_objective_equals_another_solvers(n_neighbors, beta):
    X, D = make(2, n=15)
    Z = encode(X, D, beta=beta, n_neighbors=n_neighbors).codes.toarray()
    for x, z in zip(X, Z, strict=True):
        assert objective(x, D, z, beta) == pytest.approx(solve_by_clarabel(x, D, beta, n_neighbors), abs=1e-6)


def odd(seed, kind, n_atoms, m, scale, offset, zero):
    """Descriptors (6, m) and a dictionary of the kind that breaks solvers."""
    rng = np.random.default_rng(seed)
    X, D = rng.normal(size=(6, m)), rng.normal(size=(n_atoms, m))
    half = rng.integers(0, max(1, n_atoms // 2), n_atoms)
    if kind == "duplicates":
        D = D[half]
    elif kind.startswith("near"):
        D = D[half] + float(kind[5:]) * rng.normal(size=D.shape)
    elif kind == "lattice":  # exact ties of every sort
        X, D = rng.integers(-2, 3, X.shape) / 2, rng.integers(-1, 2, D.shape) * 1.0
    elif kind == "collinear":
        direction = rng.normal(size=m)
        D = rng.integers(-3, 4, (n_atoms, 1)) * direction
        X[:3] = rng.integers(-3, 4, (3, 1)) * direction
    elif kind == "flat":
        D = rng.normal(size=(n_atoms, 1 + m // 3)) @ rng.normal(size=(1 + m // 3, m))
    elif kind == "unit":
        X, D = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, D))
    if zero:
        X[0] = D[rng.integers(n_atoms)] = 0.0
    X[1] = D[rng.integers(n_atoms)]
    X[2] *= 30.0
    return X * scale + offset, D * scale + offset


KINDS = ["normal", "duplicates", "near 1e-3", "near 1e-6", "near 1e-9", "lattice", "collinear", "flat", "unit"]


@settings(max_examples=400, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n_atoms=st.sampled_from([1, 2, 3, 5, 9, 17, 40, 70]),
    m=st.sampled_from([1, 2, 3, 8, 20]),
    scale=st.sampled_from([1.0, 1e-3, 0.1, 10.0, 1e3]),
    offset=st.sampled_from([0.0, 1000.0]),
    zero=st.booleans(),
    beta=st.sampled_from([0.02, 0.0, 1e-8, 1e-6, 1e-4, 0.15, 1.0, 10.0]),
    n_neighbors=st.sampled_from([None, 1, 2, 5, 15, 1000]),
    dtypes=st.sampled_from(["dd", "ff", "df", "fd"]),
)
@example(73376764, "near 1e-6", 17, 8, 1e3, 1e3, False, 1e-8, 15, "ff")  # the tableau came out as NaN
@example(690420819, "collinear", 5, 3, 1e3, 1e3, True, 1e-8, None, "df")  # kkt was that of an earlier step
def test_odd_dictionaries(seed, kind, n_atoms, m, scale, offset, zero, beta, n_neighbors, dtypes):
    X, D = odd(seed, kind, n_atoms, m, scale, offset, zero)
    X, D = X.astype(dtypes[0]), D.astype(dtypes[1])
    result = encode(X, D, beta=beta, n_neighbors=n_neighbors, n_jobs=1)
    assert np.isfinite(result.codes.data).all()
    assert np.isfinite(result.kkt).all()
    Z = result.codes.toarray()
    for x, z, kkt in zip(X, Z, result.kkt, strict=True):
        # On the k nearest, as far as rounding can tell atoms of equal distance apart: the test takes the coder's side.
        d2 = squared_distances(x, D)
        k = len(D) if n_neighbors is None else min(n_neighbors, len(D))
        limit = np.sort(d2)[k - 1]
        assert d2[z != 0].max() <= limit * (1 + 1e-13)
        within = (d2 < limit * (1 - 1e-13)) | (z != 0) if k < len(D) else np.full(len(D), True)
        recomputed, rounding = certificate(x, D[within], z[within], beta)
        if beta > 0 and limit > 0:  # where an atom at the very limit was left out, so was the largest zeta
            shrink = np.sqrt(d2[within].max() / limit)
            recomputed, rounding = recomputed * shrink, rounding * shrink
        bound = 1e-3 + 10 * rounding
        if max(recomputed, kkt) > bound:
            # Atoms that nearly depend on each other and next to no penalty: the optimum may have codes of 1e6 and more,
            # and no better certificate once they are rounded to float64. That, and nothing less, is an excuse.
            nearest = np.sort(np.argsort(d2, kind="stable")[:k])
            bound = 1e-3 + 10 * certificate(x, D[nearest], exact_optimum(x, D[nearest], beta), beta)[1]
        assert recomputed <= bound
        assert kkt <= bound
        if within.sum() == k:  # it was computed for the same atoms
            assert kkt == pytest.approx(recomputed, rel=1e-2, abs=1e-6 + 20 * rounding)
        assert abs(z.sum() - 1.0) <= 1e-12 + 1e-14 * np.abs(z).sum()


@pytest.mark.parametrize("n_neighbors", [None, 1, 5])
@pytest.mark.parametrize("beta", [0.0, 0.02])
def test_one_atom(n_neighbors, beta):
    result = encode([[3.0, 4.0], [0.0, 0.0]], [[1.0, 1.0]], beta=beta, n_neighbors=n_neighbors)
    assert result.codes.toarray().tolist() == [[1.0], [1.0]]
    assert result.converged


@pytest.mark.parametrize("n_neighbors", [None, 1, 5])
def test_descriptor_equal_to_an_atom(n_neighbors):
    _, D = make(3, dtype=np.float32)
    np.testing.assert_array_equal(encode(D, D, n_neighbors=n_neighbors).codes.toarray(), np.eye(len(D)))


def test_all_zero_descriptor_gets_the_problems_own_solution():
    _, D = make(4)
    x = np.zeros((1, D.shape[1]))
    z = encode(x, D, beta=0.02).codes.toarray()[0]
    assert objective(x[0], D, z, 0.02) == pytest.approx(solve_by_clarabel(x[0], D, 0.02, None), abs=1e-7)


@pytest.mark.parametrize("beta", [1e-4, 0.02])
def test_a_duplicate_changes_nothing(beta):
    X, D = make(5)
    twice = np.vstack([D, D[:20]])
    Z, ZZ = encode(X, D, beta=beta).codes.toarray(), encode(X, twice, beta=beta).codes.toarray()
    np.testing.assert_allclose(ZZ @ twice, Z @ D, atol=1e-9)
    for x, z, zz in zip(X, Z, ZZ, strict=True):
        assert objective(x, twice, zz, beta) == pytest.approx(objective(x, D, z, beta), abs=1e-12)


@pytest.mark.parametrize(("atoms", "m"), [(5, 16), (40, 16)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_without_penalty_it_is_the_affine_projection(atoms, m, scale):
    X, D = (scale * A for A in make(6, atoms=atoms, m=m))
    Z = encode(X, D, beta=0.0).codes.toarray()
    steps = np.linalg.lstsq((D[1:] - D[0]).T, (X - D[0]).T, rcond=None)[0]
    np.testing.assert_allclose(Z @ D, D[0] + steps.T @ (D[1:] - D[0]), atol=1e-7 * scale)


@pytest.mark.parametrize("n_neighbors", [15, None])
def test_invariances(n_neighbors):
    X, D = make(7)
    rng = np.random.default_rng(7)
    Z = encode(X, D, n_neighbors=n_neighbors).codes.toarray()

    def same(other):
        np.testing.assert_allclose(other.codes.toarray(), Z, atol=1e-9)

    shift, rotation = rng.normal(size=D.shape[1]), np.linalg.qr(rng.normal(size=(D.shape[1],) * 2))[0]
    same(encode(X + 10 * shift, D + 10 * shift, n_neighbors=n_neighbors))
    same(encode(X @ rotation, D @ rotation, n_neighbors=n_neighbors))
    order = rng.permutation(len(D))
    permuted = encode(X, D[order], n_neighbors=n_neighbors).codes.toarray()
    np.testing.assert_allclose(permuted, Z[:, order], atol=1e-9)


@pytest.mark.parametrize("n_neighbors", [5, None])
def test_threads_and_splits_change_nothing(n_neighbors):
    X, D = make(8, n=1000, dtype=np.float32)
    one = encode(X, D, n_neighbors=n_neighbors, n_jobs=1)
    three = encode(X, D, n_neighbors=n_neighbors, n_jobs=3)
    parts = [encode(part, D, n_neighbors=n_neighbors).codes for part in (X[:1], X[1:700], X[700:])]
    assert (one.codes != three.codes).nnz == 0
    assert abs(one.codes - sparse.vstack(parts)).max() < 1e-12
    np.testing.assert_array_equal(one.kkt, three.kkt)


def test_many_atoms_and_few_give_the_same():
    """Beyond `MAX_TABLE_ATOMS` the distances among atoms are computed on the spot."""
    X, D = make(9, n=20, atoms=MAX_TABLE_ATOMS + 52)
    for n_neighbors in (5, None):
        result = encode(X, D, beta=0.02, n_neighbors=n_neighbors)
        for x, z, kkt in zip(X, result.codes.toarray(), result.kkt, strict=True):
            assert kkt == pytest.approx(certificate(x, D, z, 0.02, n_neighbors)[0], abs=1e-10)
        assert result.kkt.max() < 1e-9


def test_result_is_a_clean_csr():
    X, D = make(10)
    codes = encode(X, D).codes
    assert codes.shape == (len(X), len(D))
    assert codes.has_sorted_indices
    assert (codes.data != 0).all()
    assert codes.data.dtype == np.float64


def test_inputs_of_any_kind():
    X, D = make(11)
    Z = encode(X, D).codes.toarray()
    np.testing.assert_array_equal(encode(np.asfortranarray(X), np.asfortranarray(D)).codes.toarray(), Z)
    np.testing.assert_array_equal(encode(X[::2], D).codes.toarray(), Z[::2])
    np.testing.assert_array_equal(encode(X.tolist(), D.tolist()).codes.toarray(), Z)
    whole = encode([[0, 1], [2, 2]], np.array([[0, 0], [2, 0], [0, 2]], np.uint8), beta=0.1)
    assert whole.converged
    before = X.copy(), D.copy()
    encode(X, D, n_neighbors=5)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(D, before[1])


@pytest.mark.parametrize("n_neighbors", [3, None])
@pytest.mark.parametrize("scale", [1e-30, 1e20, 1e60])
def test_beyond_float32(n_neighbors, scale):
    X, D = make(12)
    Z = encode(X, D, beta=0.02, n_neighbors=n_neighbors).codes.toarray()
    scaled = encode(X * scale, D * scale, beta=0.02 * scale, n_neighbors=n_neighbors).codes.toarray()
    np.testing.assert_allclose(scaled, Z, atol=1e-9)


GOOD = np.ones((3, 2))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("X", {"X": [[np.nan, 1.0]]}),
        ("X", {"X": np.empty((0, 2))}),
        ("X", {"X": np.ones((3, 5))}),
        ("X", {"X": np.ones(3)}),
        ("X", {"X": [["a", "b"]]}),
        ("D", {"D": [[np.inf, 1.0]]}),
        ("D", {"D": np.empty((0, 2))}),
        ("beta", {"beta": -0.1}),
        ("beta", {"beta": np.nan}),
        ("beta", {"beta": "much"}),
        ("n_neighbors", {"n_neighbors": 0}),
        ("n_neighbors", {"n_neighbors": 1.5}),
        ("n_neighbors", {"n_neighbors": True}),
        ("tol", {"tol": 0.0}),
        ("tol", {"tol": -1.0}),
        ("n_jobs", {"n_jobs": 0}),
    ],
)
def test_bad_input_gets_one_sentence(name, arguments):
    with pytest.raises(ValueError, match=rf"^{name} [^\n]+$"):
        encode(**({"X": GOOD, "D": GOOD} | arguments))


@pytest.fixture(scope="module")
def faces(data_root):
    """100,000 dense SIFT descriptors of Extended Yale B, and 570 of them, normalised, as atoms."""
    with zipfile.ZipFile(data_root / "yaleb" / "CroppedYale.zip") as archive:
        names = sorted(n for n in archive.namelist() if n.endswith(".pgm") and "Ambient" not in n)
        chosen = names[:: len(names) // 160]
        images = [np.asarray(Image.open(io.BytesIO(archive.read(name)))) for name in chosen]
    values = np.concatenate([d.values for d in DenseSIFT().transform(images)])
    rng = np.random.default_rng(0)
    X = values[rng.permutation(len(values))[:100_000]]
    assert len(X) == 100_000
    candidates = values[np.linalg.norm(values, axis=1) > 0.5]
    D = candidates[rng.choice(len(candidates), 570, replace=False)]
    return X, D / np.linalg.norm(D, axis=1, keepdims=True)


@pytest.mark.data
@pytest.mark.parametrize("n_neighbors", [15, None])
def test_real_descriptors(faces, n_neighbors):
    X, D = faces
    result = encode(X, D, beta=0.02, n_neighbors=n_neighbors)
    assert result.kkt.max() <= 1e-4
    assert np.abs(result.codes.sum(axis=1) - 1.0).max() <= 1e-5
    assert result.converged
    for i in range(0, len(X), 5000):
        z = result.codes[[i]].toarray()[0]
        assert result.kkt[i] == pytest.approx(certificate(X[i], D, z, 0.02, n_neighbors)[0], abs=1e-9)
        assert objective(X[i], D, z, 0.02) == pytest.approx(solve_by_clarabel(X[i], D, 0.02, n_neighbors), abs=1e-6)


def test_the_default_of_beta_is_the_classifiers():
    default = inspect.signature(encode).parameters["beta"].default
    assert default == DDLCNClassifier().beta == DDLCNEncoder().beta

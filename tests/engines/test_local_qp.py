"""The two solvers of a small coding problem against each other."""

import numpy as np
import pytest

from ddlcn.coding import encode
from ddlcn.engines.cpu.robust_qp import solve_robust_qp


def solve_each(X, D, beta):
    Z, kkt = np.zeros((len(X), len(D))), np.empty(len(X))
    for i, x in enumerate(X):
        kkt[i] = solve_robust_qp(x, D, np.arange(len(D), dtype=np.int32), len(D), beta, 1e-9, Z[i], np.empty(len(D)))
    return Z, kkt


@pytest.mark.parametrize(("n_atoms", "m"), [(1, 3), (5, 20), (15, 128), (40, 8), (60, 2)])
@pytest.mark.parametrize("beta", [1e-4, 0.02, 0.5])
def test_projections_and_tableau_agree(n_atoms, m, beta):
    rng = np.random.default_rng(m)
    X, D = rng.normal(size=(20, m)), rng.normal(size=(n_atoms, m))
    Z, kkt = solve_each(X, D, beta)
    assert kkt.max() < 1e-9
    np.testing.assert_allclose(encode(X, D, beta=beta).codes.toarray(), Z, atol=1e-8)


def test_projections_see_what_squares_hide():
    """Atoms in a plane but for 1e-8, and a penalty so small that this decides."""
    rng = np.random.default_rng(0)
    D = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 5)) + 1e-8 * rng.normal(size=(12, 5))
    X = rng.normal(size=(30, 5))
    result = encode(X, D, beta=1e-8)
    sizes = np.abs(result.codes).sum(axis=1)
    assert (result.kkt <= 1e-3 + 1e-6 * sizes).all()
    np.testing.assert_allclose(result.codes.sum(axis=1), 1.0, atol=1e-14 * sizes.max())

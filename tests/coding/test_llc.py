"""LLC's codes minimise what LLC minimises."""

import numpy as np
import pytest
from scipy import optimize

from ddlcn.coding.llc import LLCCoder


@pytest.mark.parametrize("beta", [0.02, 0.5])
def test_codes_are_optimal(beta):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(10, 8)), rng.normal(size=(30, 8))
    codes = LLCCoder(D, beta, 5).encode_block(X)
    for x, indices, z in zip(X, codes.indices, codes.values, strict=True):
        distances = np.linalg.norm(D - x, axis=1)
        assert set(indices) == set(np.argsort(distances)[:5])
        assert z.sum() == pytest.approx(1.0)

        def objective(z, x=x, indices=indices, distances=distances):
            return ((x - z @ D[indices]) ** 2).sum() + beta * (distances[indices] ** 2 * z**2).sum()

        best = optimize.minimize(objective, np.full(5, 0.2), constraints={"type": "eq", "fun": lambda z: z.sum() - 1})
        assert objective(z) <= best.fun + 1e-6


def test_degenerate_input_has_an_answer():
    D = np.repeat(np.eye(4), 2, axis=0)  # every atom twice
    for beta in (0.0, 0.1):
        codes = LLCCoder(D, beta, 4).encode_block(np.vstack([D[:2], np.zeros((1, 4))]))
        assert np.isfinite(codes.values).all()
        np.testing.assert_allclose(codes.values.sum(axis=1), 1.0)

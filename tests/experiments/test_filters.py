"""The convolutional stand-in: responses are what the definition says."""

import numpy as np

from ddlcn.experiments.filters import FilterBank


def test_responses_are_rectified_and_balanced():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(500, 20))).astype(np.float32)
    bank = FilterBank(X, (30, 8), np.random.SeedSequence(1))
    codes = bank.encode_block(X)
    Z = np.zeros((500, 38))
    for i in range(500):
        used = slice(0, codes.counts[i])
        assert (codes.values[i, used] > 0).all()
        assert (np.diff(codes.indices[i, used]) > 0).all()
        Z[i, codes.indices[i, used]] = codes.values[i, used]
    W, bias = bank.layers[0]
    np.testing.assert_allclose(Z[:, :30], np.maximum(X @ W - bias, 0), atol=1e-6)
    assert 0.4 < (Z[:, :30] > 0).mean() < 0.6
    assert Z[:, 30:].any(axis=0).all()

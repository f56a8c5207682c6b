"""Inner products: whole or streamed, they are those of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ddlcn.svm import gram, gram_matrix, stream_gram


@pytest.fixture
def features():
    return sparse.csr_array(sparse.random_array((50, 1000), density=0.2, rng=0, dtype=np.float32)) / 10


def test_the_gram_matrix_of_many_blocks(features, monkeypatch):
    monkeypatch.setattr(gram, "COLUMNS", 64)
    np.testing.assert_allclose(gram_matrix(features), (features @ features.T).toarray(), atol=1e-5)


@pytest.mark.parametrize("n_block", [1, 7, 25, 50, 80])
def test_a_streamed_gram_matrix_is_the_same(features, n_block):
    held = []

    def take(rows):
        block = features[rows]
        held.append(block.shape[0])
        return block

    np.testing.assert_allclose(stream_gram(take, 50, n_block), gram_matrix(features), atol=1e-5)
    assert max(held) <= n_block

"""The route to the SVM follows the size, and the weights do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.svm import SVMConfig, feature_rows, prefer_gram, route, train
from tests.svm.test_linear import make_problem


class Rows:
    """Features at hand, that pretend to be computed when asked for."""

    def __init__(self, features):
        self._features = features
        self.n_images, self.n_columns = features.shape
        self.largest, self.n_computed = 0, 0

    def take(self, rows):
        block = self._features[rows]
        self.largest = max(self.largest, block.shape[0])
        self.n_computed += block.shape[0]
        return block

    def take_all(self, max_bytes):
        return self._features if max_bytes is None or 8 * self._features.nnz <= max_bytes else None


def test_the_route_follows_the_size():
    assert prefer_gram(60, 60 * 120, n_classes=3)
    assert not prefer_gram(1500, 1500 * 120, n_classes=3)
    assert prefer_gram(1500, 1500 * 120, n_classes=300)  # the inverse is shared; each class costs liblinear a run
    assert not prefer_gram(5001, 10**12, n_classes=300)


@pytest.mark.parametrize("disk", ["with room", "full"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_streamed_features_give_the_same_weights(n_classes, disk, monkeypatch):
    F, y = make_problem(n_classes)
    config = SVMConfig(n_classes, 1.0, "liblinear", np.ones(n_classes))
    held = train(Rows(F), y, config, n_jobs=1)
    assert held.gram is not None
    assert held.features is not None
    monkeypatch.setattr(route, "HELD_BYTES", 8 * F.nnz - 1)
    monkeypatch.setattr(route, "BLOCK_BYTES", 8 * F.nnz // 4)
    monkeypatch.setattr(feature_rows, "DISK_RESERVE", 0 if disk == "with room" else 2**62)
    rows = Rows(F)
    streamed = train(rows, y, config, n_jobs=1)
    assert rows.largest <= len(y) // 4
    assert streamed.features is None
    if disk == "with room":  # each once, and a few before, to see how large they are
        assert rows.n_computed <= len(y) + 16
    np.testing.assert_allclose(streamed.gram, held.gram, atol=1e-6)
    np.testing.assert_allclose(streamed.svm.coef, held.svm.coef, atol=1e-5)
    np.testing.assert_allclose(streamed.svm.decide(F), held.svm.decide(F), atol=1e-5)


def test_too_many_images_for_a_gram_matrix_are_held_whatever_their_size(monkeypatch):
    monkeypatch.setattr(route, "MAX_GRAM_IMAGES", 50)
    monkeypatch.setattr(route, "HELD_BYTES", 1)
    F, y = make_problem(3)
    training = train(Rows(F), y, SVMConfig(3, 1.0, "liblinear", np.ones(3)), n_jobs=1)
    assert training.gram is None
    assert training.features.shape == F.shape

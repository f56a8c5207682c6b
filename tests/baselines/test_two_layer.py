"""Two layers of local coordinates: what the features are, written out slowly, and what they can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.baselines.two_layer import DCN, TLCC, TwoLayerCoder, learn_two_layers
from ddlcn.coding import encode

BETAS, NEIGHBOURS = (0.2, 0.05), (3, 4)


@pytest.fixture(scope="module")
def points():
    """Three rings around each other, in ten dimensions: no line tells them apart."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    angles = rng.uniform(0.0, 2.0 * np.pi, 900)
    flat = (1.0 + y[:, None]) * np.column_stack([np.cos(angles), np.sin(angles)])
    X = flat @ np.linalg.qr(rng.normal(size=(10, 2)))[0].T + 0.05 * rng.normal(size=(900, 10))
    return X, y


@pytest.fixture(scope="module")
def layers(points):
    X, _ = points
    return learn_two_layers(X, 8, 12, BETAS[0], NEIGHBOURS[0], np.random.SeedSequence(0))


def test_features_are_products_of_both_layers_codes(points, layers):
    X, _ = points
    anchors, deep = layers
    coder = TwoLayerCoder(anchors, deep, BETAS, NEIGHBOURS)
    features = coder.encode(X[:40], 1).toarray()
    z = encode(X[:40], anchors, BETAS[0], NEIGHBOURS[0]).codes.toarray()
    slow = np.hstack(
        [
            z[:, [j]] * encode(X[:40] - anchors[j], own - anchors[j], BETAS[1], NEIGHBOURS[1]).codes.toarray()
            for j, own in enumerate(deep)
        ]
    )
    assert features.shape == (40, coder.n_columns) == slow.shape
    np.testing.assert_allclose(features, slow, atol=1e-5)


def test_features_sum_to_one(points, layers):
    X, _ = points
    features = TwoLayerCoder(*layers, BETAS, NEIGHBOURS).encode(X, 2)
    np.testing.assert_allclose(features.sum(axis=1), 1.0, atol=1e-5)
    assert np.diff(features.indptr).max() <= NEIGHBOURS[0] * NEIGHBOURS[1]


def test_deep_anchors_lie_among_the_points_that_use_their_anchor(points, layers):
    X, _ = points
    anchors, deep = layers
    users = encode(X, anchors, BETAS[0], NEIGHBOURS[0]).codes.toarray() != 0.0
    for j, own in enumerate(deep):
        mine = X[users[:, j]]
        assert len(own) <= 12
        assert np.all(own >= mine.min(axis=0) - 1e-9)
        assert np.all(own <= mine.max(axis=0) + 1e-9)


def test_second_layer_sees_what_one_layer_does_not(points):
    X, y = points
    one = DCN(8, 1, random_state=0).fit(X[:600], y[:600]).score(X[600:], y[600:])
    two = DCN(8, 12, random_state=0).fit(X[:600], y[:600]).score(X[600:], y[600:])
    assert two > 0.95
    assert two > one + 0.1


def test_threads_do_not_change_the_scores(points):
    X, y = points
    one, two = (DCN(8, 12, n_jobs=n, random_state=0).fit(X[:300], y[:300]).decision_function(X[300:]) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_repeated_points_and_an_anchor_of_its_own_only():
    X = np.repeat(np.eye(3), [5, 5, 1], axis=0)
    model = DCN(random_state=0).fit(X, [0] * 5 + [1] * 5 + [2])
    assert len(model.anchors_) == 3
    np.testing.assert_array_equal(model.predict(np.eye(3)), [0, 1, 2])


def test_tlcc_recognises_stripes(stripes):
    images, labels = stripes
    model = TLCC(32, 8, random_state=0).fit(images[:30], labels[:30])
    assert model.dictionary_.shape == (32, 128)
    assert model.deep_dictionary_.shape == (8, 128)
    assert model.score(images[30:], labels[30:]) > 0.9


def test_tlcc_has_no_more_atoms_than_descriptors():
    X = np.random.default_rng(0).random((6, 4))
    model = TLCC(random_state=0).fit(X, [0, 1] * 3)
    assert len(model.dictionary_) == 6
    assert len(model.deep_dictionary_) == 6


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DCN(n_anchors=0), "n_anchors must be"),
        (DCN(n_neighbors=(1, 2, 3)), "n_neighbors has 3 values for 2 layers"),
        (DCN(beta=-1.0), "beta must be"),
        (TLCC(n_deep_atoms=0), "n_deep_atoms must be"),
        (TLCC(l1_radius=0.0), "l1_radius must be"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(4), [0, 0, 1, 1])

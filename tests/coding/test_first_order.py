"""First-order features equal a slow, direct construction, and say which side of their atoms the descriptors lie on."""

import numpy as np
import pytest

from ddlcn.coding import encode
from ddlcn.coding.first_order import FirstOrderPooling, to_unit_norm
from ddlcn.dictionaries import learn_first_order
from ddlcn.pooling import assign_cells

BETA, K, TOL = 0.1, 4, 1e-6


def some_descriptors(n=400, m=12, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, m))) ** 2
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def slow_first_order(model, X, cells, n_cells):
    """One image, loop by loop."""
    lengths = np.maximum(np.linalg.norm(X, axis=1), model.floor)
    codes = encode(X / lengths[:, None], model.atoms, BETA, K).codes.toarray()
    feature = np.zeros((n_cells, *model.means.shape))
    for cell in range(n_cells):
        members = [i for i in range(len(X)) if cell in cells[i]]
        total = sum(max(codes[i, j], 0.0) for i in members for j in range(len(model.atoms)))
        for i in members:
            y = (X[i] / lengths[i] - model.centre) @ model.basis
            for j in range(len(model.atoms)):
                side = (y - model.means[j]) / model.scales[j]
                feature[cell, j] += max(codes[i, j], 0.0) * side / np.sqrt(model.shares[j]) / total
    feature = np.sign(feature) * np.sqrt(np.abs(feature))
    return (feature / np.linalg.norm(feature)).ravel()


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 1e-4)])
def test_features_equal_the_slow_construction(dtype, atol):
    model = learn_first_order(some_descriptors(dtype=dtype), 6, BETA, K, TOL, random_state=0)
    X = some_descriptors(30, seed=1, dtype=dtype)
    X[3] *= 1e-3  # shorter than the floor
    rng = np.random.default_rng(2)
    cells = assign_cells(rng.integers(0, 30, (30, 2)).astype(float), (30, 30), (1, 2))
    starts = np.array([0, 18, 30])
    found = FirstOrderPooling(model, BETA, K, TOL).pool(X, cells, starts, 5)
    assert found.shape == (2, 5 * model.means.size)
    assert found.dtype == np.float32
    for image, (begin, end) in enumerate([(0, 18), (18, 30)]):
        expected = slow_first_order(model, X[begin:end], cells[begin:end], 5)
        np.testing.assert_allclose(found.toarray()[image], expected, atol=atol)


def test_an_image_does_not_depend_on_its_batch():
    model = learn_first_order(some_descriptors(), 6, BETA, K, TOL, random_state=0)
    X = some_descriptors(700, seed=3)  # more than a block of the coder
    cells = np.zeros((700, 1), np.int32)
    first_order = FirstOrderPooling(model, BETA, K, TOL)
    together = first_order.pool(X, cells, np.array([0, 300, 700]), 1).toarray()
    alone = first_order.pool(X[300:], cells[300:], np.array([0, 400]), 1).toarray()
    np.testing.assert_allclose(together[1], alone[0], atol=1e-6)


def test_an_empty_cell_is_zero():
    model = learn_first_order(some_descriptors(), 6, BETA, K, TOL, random_state=0)
    X, cells = some_descriptors(20), np.zeros((20, 1), np.int32)
    feature = FirstOrderPooling(model, BETA, K, TOL).pool(X, cells, np.array([0, 20]), 2).toarray()[0]
    assert np.isfinite(feature).all()
    assert feature[: model.means.size].any()
    assert not feature[model.means.size :].any()


def test_rows_shorter_than_the_floor_stay_short():
    X = np.array([[3.0, 4.0], [0.003, 0.004], [0.0, 0.0]])
    lengths = np.linalg.norm(to_unit_norm(X, 0.05), axis=1)
    np.testing.assert_allclose(lengths, [1.0, 0.1, 0.0])

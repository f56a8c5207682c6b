"""Pooling: equal to a slow, obvious version; cells as the design defines them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ddlcn.coding import CodeBlock
from ddlcn.pooling import assign_cells, check_pyramid, count_cells, pool, raise_to_power


def make_block(codes: np.ndarray) -> CodeBlock:
    """A dense (n, atoms) array of codes as a CodeBlock."""
    n, n_atoms = codes.shape
    indices, values = np.zeros((n, n_atoms), np.int32), np.zeros((n, n_atoms))
    counts = np.zeros(n, np.int32)
    for i, row in enumerate(codes):
        used = np.flatnonzero(row)
        counts[i] = len(used)
        indices[i, : len(used)], values[i, : len(used)] = used, row[used]
    return CodeBlock(indices, values, counts, np.zeros(n))


def pool_slowly(codes, xy, shape, pyramid, plus, minus, power=1.0):
    """The definition, cell by cell, in plain numpy."""
    height, width = shape
    halves = [[], []]
    for level in pyramid:
        for row in range(level):
            for column in range(level):
                inside = [
                    i
                    for i, (x, y) in enumerate(xy)
                    if min(int((x + 0.5) * level / width), level - 1) == column
                    and min(int((y + 0.5) * level / height), level - 1) == row
                ]
                for half, sign in enumerate((1, -1)):
                    value = (sign * codes[inside]).max(axis=0) if inside else np.zeros(codes.shape[1])
                    halves[half].append(np.sign(value) * np.abs(value) ** power * (plus, minus)[half])
    feature = np.concatenate([np.concatenate(half) for half in halves])
    norm = np.linalg.norm(feature)
    return feature / norm if norm else feature


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("pyramid", [(1, 2, 4), (1,), (3, 1), (1, 2, 3)])
def test_pooling_equals_the_definition(pyramid, power):
    rng = np.random.default_rng(3)
    n_atoms, sizes, shapes = 7, (1, 2, 30, 9), ((20, 33), (16, 16), (50, 41), (28, 28))
    plus, minus = rng.uniform(1, 2, n_atoms), rng.uniform(0, 1, n_atoms)
    codes = [rng.normal(size=(n, n_atoms)) * (rng.random((n, n_atoms)) < 0.6) for n in sizes]
    xy = [
        np.round(rng.uniform(0, 1, (n, 2)) * (s[1] - 1, s[0] - 1) * 2) / 2 for n, s in zip(sizes, shapes, strict=True)
    ]
    cells = np.concatenate([assign_cells(p, s, pyramid) for p, s in zip(xy, shapes, strict=True)])
    starts = np.cumsum([0, *sizes])
    features = pool(make_block(np.concatenate(codes)), cells, starts, pyramid, plus, minus, power).features
    expected = [pool_slowly(*item, pyramid, plus, minus, power) for item in zip(codes, xy, shapes, strict=True)]
    np.testing.assert_allclose(features.toarray(), expected, atol=1e-6)
    assert features.has_sorted_indices or sparse.csr_array(features).has_canonical_format


def test_an_atom_that_all_descriptors_of_a_cell_use_may_pool_to_a_negative_number():
    codes = make_block(np.array([[-0.5, 1.5], [-0.2, 1.2]]))
    cells = np.zeros((2, 1), np.int32)
    features = pool(codes, cells, np.array([0, 2]), (1,), np.ones(2), np.zeros(2)).features.toarray()[0]
    expected = np.array([-0.2, 1.5, 0, 0])
    np.testing.assert_allclose(features, expected / np.linalg.norm(expected), rtol=1e-6)


def test_a_descriptor_that_does_not_use_an_atom_counts_as_zero():
    codes = make_block(np.array([[-0.5, 1.5], [0.0, 1.0]]))
    features = pool(
        codes, np.zeros((2, 1), np.int32), np.array([0, 2]), (1,), np.ones(2), np.ones(2)
    ).features.toarray()[0]
    expected = np.array([0, 1.5, 0.5, -1.0])  # max z, then max -z
    np.testing.assert_allclose(features, expected / np.linalg.norm(expected), rtol=1e-6)


def test_cells_split_at_half_pixels_and_the_last_one_takes_the_border():
    xy = np.array([[0, 0], [4.5, 0], [5, 0], [9, 9], [9.5, 9.5]])
    cells = assign_cells(xy, (10, 10), (1, 2))
    assert cells[:, 0].tolist() == [0] * 5
    assert cells[:, 1].tolist() == [
        1,
        2,
        2,
        4,
        4,
    ]  # x = 4.5: its middle is at 5, where the second column begins


def test_cell_count():
    assert count_cells((1, 2, 4)) == 21


@pytest.mark.parametrize("pyramid", [(), "124", 4, (0,), (1.5,), None])
def test_bad_pyramid(pyramid):
    with pytest.raises(ValueError, match="pyramid"):
        check_pyramid(pyramid)


def test_powers_of_pooled_features_are_those_of_pooling_with_a_power():
    rng = np.random.default_rng(4)
    codes = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.5)
    cells = assign_cells(rng.integers(0, 30, (20, 2)).astype(float), (30, 30), (1, 2))
    starts, ones = np.array([0, 12, 20]), np.ones(6)
    plain = pool(make_block(codes), cells, starts, (1, 2), ones, None).features
    for power in (0.3, 0.5, 1.0, 2.0):
        expected = pool(make_block(codes), cells, starts, (1, 2), ones, None, power).features.toarray()
        np.testing.assert_allclose(raise_to_power(plain, power).toarray(), expected, atol=1e-6)


def test_without_a_second_half_the_first_stays_the_same():
    rng = np.random.default_rng(4)
    codes = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.5)
    cells = assign_cells(rng.integers(0, 30, (20, 2)).astype(float), (30, 30), (1, 2))
    starts, ones = np.array([0, 12, 20]), np.ones(6)
    both = pool(make_block(codes), cells, starts, (1, 2), ones, np.zeros(6)).features.toarray()
    one = pool(make_block(codes), cells, starts, (1, 2), ones, None).features.toarray()
    assert np.array_equal(both[:, : both.shape[1] // 2], one)

"""A data set of some images of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ddlcn.datasets import Dataset


@pytest.fixture
def data():
    """Three classes, four images each, two runs; the last image of each class and run is for testing."""
    labels = np.repeat([0, 1, 2], 4)
    return Dataset(
        name="made up",
        title="Made up",
        images=[f"image {i}" for i in range(12)],
        labels=labels.astype(np.intp),
        class_names=("zebra", "ant", "mole"),
        image_names=tuple(f"{i:02d}" for i in range(12)),
        is_test=np.arange(12) % 2 == 1,
        runs=(np.arange(12) // 2 % 2).astype(np.intp),
        people_classes=frozenset({"mole"}),
    )


def test_taken_images_keep_what_is_theirs(data):
    part = data.take(np.array([11, 0, 8]))
    assert part.images == ["image 11", "image 0", "image 8"]
    assert part.image_names == ("11", "00", "08")
    assert part.class_names == ("zebra", "mole")  # in the order they had; no ant is left
    np.testing.assert_array_equal(part.labels, [1, 0, 1])
    np.testing.assert_array_equal(part.is_test, [True, False, False])
    np.testing.assert_array_equal(part.runs, [1, 0, 0])
    assert [part.may_show(c) for c in (0, 1)] == [True, False]
    assert part.labels.dtype == np.intp
    assert (part.name, len(part)) == ("made up", 3)
    assert part.identity != data.identity


def test_a_mask_means_the_same(data):
    assert data.take(data.runs == 1).image_names == data.take(np.flatnonzero(data.runs == 1)).image_names
    assert data.take(np.ones(12, bool)).identity == data.identity


def test_images_in_one_array_stay_so(data):
    stack = np.arange(12 * 4).reshape(12, 2, 2)
    part = replace(data, images=stack, is_test=None, runs=None).take(np.array([3, 5]))
    np.testing.assert_array_equal(part.images, stack[[3, 5]])
    assert (part.is_test, part.runs) == (None, None)


def test_runs_tell_data_sets_apart(data):
    assert replace(data, runs=None).identity != data.identity
    assert replace(data, runs=1 - data.runs).identity != data.identity


@pytest.mark.parametrize("name", ["is_test", "runs", "labels"])
def test_columns_of_other_lengths_are_refused(data, name):
    with pytest.raises(ValueError, match="'made up': images, labels, image_names, is_test and runs differ in number"):
        replace(data, **{name: getattr(data, name)[:5]})

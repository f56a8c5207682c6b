"""Who trains, who is tested: nobody twice, and under the clean rule no test image shapes a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlcn.experiments.protocol import draw_split
from ddlcn.experiments.settings import Settings


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    counts=st.lists(st.integers(6, 15), min_size=2, max_size=5),
    t=st.integers(1, 5),
    p=st.one_of(st.none(), st.integers(1, 12)),
    rule=st.sampled_from(["clean", "published"]),
)
def test_splits_are_what_they_claim(seed, counts, t, p, rule):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    split = draw_split(Settings("x", t, p, rule=rule), labels, None, seed)
    assert np.array_equal(np.sort(np.concatenate([split.train, split.test])), np.arange(len(labels)))
    assert np.bincount(labels[split.train]).tolist() == [t] * len(counts)
    per_class = np.bincount(labels[split.dictionary], minlength=len(counts))
    if rule == "clean":
        assert np.isin(split.dictionary, split.train).all()
        assert per_class.tolist() == [min(p or t, t)] * len(counts)
        assert bool(split.note) == (p is not None and p > t)
    else:
        assert per_class.tolist() == [count if p is None else min(p, count) for count in counts]


def test_the_published_rule_does_draw_test_images():
    labels = np.repeat(np.arange(5), 20)
    split = draw_split(Settings("x", 5, 10, rule="published"), labels, None, 0)
    assert np.isin(split.dictionary, split.test).any()


def test_a_seed_means_one_split_whatever_the_rest():
    labels = np.repeat(np.arange(5), 20)
    first = draw_split(Settings("x", 5, 3, 15), labels, None, 4)
    other = draw_split(Settings("x", 5, 4, 7, rule="published", n_neighbors=5), labels, None, 4)
    assert np.array_equal(first.train, other.train)
    assert not np.array_equal(first.train, draw_split(Settings("x", 5, 3, 15), labels, None, 5).train)


def test_a_fixed_split_stays():
    labels, is_test = np.tile(np.arange(3), 20), np.arange(60) >= 45
    split = draw_split(Settings("x", None, 2), labels, is_test, 0)
    assert np.array_equal(split.train, np.arange(45))
    assert np.array_equal(split.test, np.arange(45, 60))
    fewer = draw_split(Settings("x", 4, 2), labels, is_test, 0)
    assert np.array_equal(fewer.test, split.test)
    assert np.isin(fewer.train, split.train).all()


def test_too_few_images_is_said():
    with pytest.raises(ValueError, match="train_per_class = 20.*at most 19"):
        draw_split(Settings("x", 20), np.repeat(np.arange(2), 20), None, 0)
    with pytest.raises(ValueError, match="train_per_class"):
        draw_split(Settings("x"), np.repeat(np.arange(2), 20), None, 0)

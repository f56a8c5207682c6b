"""Who trains, who is tested: nobody twice, and under the clean rule no test image shapes a dictionary."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlcn.datasets import Dataset
from ddlcn.experiments.protocol import draw_split, pick_run, take_part
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


@pytest.fixture
def runs():
    """Three runs of two characters each: one training image and one test image of each."""
    names = tuple(f"run{r}/{side}{c}" for r in range(3) for c in range(2) for side in ("test", "training"))
    return Dataset(
        name="made up", title="Made up", images=[f"picture of {name}" for name in names],
        labels=np.repeat(np.arange(6), 2), class_names=tuple(f"run{r}/class{c}" for r in range(3) for c in range(2)),
        image_names=names, is_test=np.tile([True, False], 6), runs=np.repeat(np.arange(3), 4),
    )  # fmt: skip


def test_a_seed_is_a_run_of_the_distribution(runs):
    for seed in range(3):
        part = pick_run(runs, seed)
        assert part.class_names == (f"run{seed}/class0", f"run{seed}/class1")
        assert all(name.startswith(f"run{seed}/") for name in part.image_names)
        np.testing.assert_array_equal(part.labels, [0, 0, 1, 1])
        assert pick_run(runs, seed) is part  # so that what was read of it is kept
        assert pick_run(part, seed) is part  # and that it may be picked again
        split = draw_split(Settings("x"), part.labels, part.is_test, seed)
        assert [part.image_names[i] for i in split.test] == [f"run{seed}/test0", f"run{seed}/test1"]
    assert len({pick_run(runs, seed).identity for seed in range(3)} | {runs.identity}) == 4


def test_without_runs_there_is_nothing_to_pick(runs):
    plain = replace(runs, runs=None)
    assert pick_run(plain, 7) is plain


@pytest.mark.parametrize("seed", [-1, 3, 20])
def test_a_run_that_is_not_there(runs, seed):
    with pytest.raises(ValueError, match=f"'made up' has 3 runs and a seed is one of them: choose 0 to 2; got {seed}"):
        pick_run(runs, seed)


def test_a_quick_part_is_of_the_run(runs):
    items, labels, is_test = take_part(pick_run(runs, 2), Settings("x", quick=True))
    assert {item.name.split("/")[0] for item in items} == {"run2"}
    assert sorted(labels.tolist()) == [0, 0, 1, 1]
    assert is_test.sum() == 2

"""The whole method on real data: the accuracies that docs/measurements.md promises."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import DDLCNClassifier
from ddlcn.datasets import load_mnist, load_yaleb

pytestmark = pytest.mark.data


def test_extended_yale_b(data_root):
    """32 images per person, dictionaries from the training images only."""
    images, people = load_yaleb()
    assert images.shape == (2414, 192, 168)
    assert len(np.unique(people)) == 38
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.choice(np.flatnonzero(people == p), 32, replace=False) for p in np.unique(people)])
    test = np.setdiff1d(np.arange(len(people)), train)
    model = DDLCNClassifier(random_state=0).fit(images[train], people[train])
    assert model.score(images[test], people[test]) >= 0.988


def test_mnist_with_few_images(data_root):
    """300 images per class; all 60,000 are `python -m benchmarks.recognition mnist`."""
    images, labels, test_images, test_labels = load_mnist()
    assert images.shape == (60000, 28, 28)
    assert test_images.shape == (10000, 28, 28)
    train = np.concatenate([np.flatnonzero(labels == c)[:300] for c in range(10)])
    model = DDLCNClassifier(random_state=0).fit(images[train], labels[train])
    assert model.score(test_images, test_labels) >= 0.96

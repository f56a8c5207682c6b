"""Tuning sees the training part of a fold only, and what it promises is what a classifier fitted there does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from ddlcn import DDLCNClassifier, DenseSIFT
from ddlcn.images import name_images
from ddlcn.model_selection.tuning import _try_fold, apply_tuning, tune


def small(**parameters) -> DDLCNClassifier:
    return DDLCNClassifier(**{"atoms_per_class": 2, "random_state": 0, "n_jobs": 1, **parameters})


@pytest.fixture(scope="module")
def noisy(stripes):
    """Stripes that are hard to tell apart."""
    images, labels = stripes
    rng = np.random.default_rng(0)
    return [np.clip(0.5 + 0.2 * (image - 0.5) + rng.normal(0, 0.3, image.shape), 0, 1) for image in images], labels


@pytest.mark.parametrize("depth", ["augment", "residual"])
def test_a_fold_does_what_fit_and_predict_do(noisy, depth):
    images, labels = noisy
    indices = np.unique(labels, return_inverse=True)[1]
    inside, outside = np.arange(0, 24), np.arange(24, len(images))
    options = {"n_neighbors": (3, 6), "beta": (0.05,), "pool_power": (1.0, 0.5), "C": (0.1, 5.0)}
    model = small(depth=depth)
    found = _try_fold(model, list(name_images(images)), indices, inside, outside, options)
    assert len(found) == 8
    for (k, beta, power, C), accuracy in found.items():
        fitted = clone(model).set_params(n_neighbors=k, beta=beta, pool_power=power, C=C)
        fitted.fit([images[i] for i in inside], indices[inside])
        y_pred = fitted.predict([images[i] for i in outside])
        assert accuracy == pytest.approx(balanced_accuracy_score(indices[outside], y_pred))
    assert len(set(found.values())) > 1  # else the comparison would say nothing


def test_the_best_comes_first_and_ties_keep_their_order(noisy):
    choices = {"C": (1.0, 1.0 + 1e-12), "pool_power": (1.0, 0.2)}
    result = tune(small(), *noisy, choices, n_folds=2)
    accuracies = [one.accuracy for one in result.tried]
    assert accuracies == sorted(accuracies, reverse=True)
    assert result.best == result.tried[0].parameters
    assert result.best["C"] == 1.0
    assert {one.parameters["n_neighbors"] for one in result.tried} == {15}  # not varied: the model's own
    assert all(len(one.accuracies) == 2 for one in result.tried)


def test_same_seed_same_choice(noisy):
    choices = {"beta": (0.02, 0.2)}
    one, two = (tune(small(), *noisy, choices, n_folds=3).tried for _ in range(2))
    assert one == two


def test_the_model_is_not_changed(noisy):
    model = small()
    before = dict(model.get_params())
    result = tune(model, *noisy, {"C": (1.0, 2.0)}, n_folds=2)
    assert model.get_params() == before
    clone(model).set_params(**result.best).fit(*noisy)


def test_errors_say_what_to_do(stripes):
    images, labels = stripes
    with pytest.raises(ValueError, match="choices has 'gamma': only n_neighbors, beta, pool_power, C can be tuned"):
        tune(small(), images, labels, {"gamma": (1,)})
    alone = np.array(["only one", *labels[1:]])
    with pytest.raises(ValueError, match="class 'only one' has a single image: tuning needs two or more"):
        tune(small(), images, alone, {"C": (1.0,)})


def test_what_is_tuned_is_tuned_for_every_kind_of_descriptor(noisy):
    """A branch with parameters of its own must not keep them while the figure is reported for both."""
    own = {"n_neighbors": 2, "beta": 0.4, "n_layers": 2}
    model = small(features=[(DenseSIFT(8, 6), own), DenseSIFT(16, 6)], n_layers=1)
    result = tune(model, *noisy, {"n_neighbors": (3,), "beta": (0.05,)}, n_folds=2)
    first, second = apply_tuning(model, result.best).configure().branches
    for branch in (first, second):
        assert set(branch.n_neighbors) == {3}
        assert set(branch.beta) == {0.05}
    assert (first.n_layers, second.n_layers) == (2, 1)  # what was not tuned stays
    assert set(model.configure().branches[0].n_neighbors) == {2}  # the model itself is as it was

"""What every baseline promises: scikit-learn's checks, images or vectors, repeatable, pickles, and is on the list."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ddlcn import baselines
from ddlcn.baselines.base import PictureBaseline
from ddlcn.baselines.registry import METHODS, find_missing, make_method
from ddlcn.workflows.compare import measure_size

# Small, so that all of scikit-learn's checks take seconds.
FEW = {"max_iter": 5, "init_iter": 3}
SMALL = {
    "EasyDL": FEW,
    "ConvolutionalClustering": {"n_filters": (8, 8), "n_windows": (300, 200), "max_iter": 3},
    "DDL2019": {"atoms_per_class": 4, "n_epochs": 2},
    "KSVD": FEW,
    "DKSVD": FEW,
    "LCKSVD1": FEW,
    "LCKSVD2": FEW,
    "MBAP": FEW,
    "SupGraphDL": FEW,
    "MHMP": {"paths": ((8,), (5, 16)), "n_atoms": (10, 20), "n_samples": 300, "max_iter": 3},
    "EmbedCNN": {"n_steps": 10, "image_shape": (16, 16), "channels": (8,)},
    "SmallCNN": {"n_steps": 30, "image_shape": (16, 16)},
}


def make_all():
    for name in baselines.__all__:
        if name in ("EmbedCNN", "SmallCNN") and find_missing("small CNN"):
            continue
        yield getattr(baselines, name)(**SMALL.get(name, {}), random_state=0)


ALL = list(make_all())


@parametrize_with_checks(ALL)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def split(stripes):
    images, labels = stripes
    return images[:18], labels[:18], images[30:], labels[30:]


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_takes_images_repeats_and_pickles(estimator, split):
    images, labels, new_images, _ = split
    model = clone(estimator).fit(images, labels)
    decisions = model.decision_function(new_images)
    assert decisions.shape == (len(new_images), 3)
    assert np.isfinite(decisions).all()
    assert set(model.predict(new_images)) <= set(labels)
    again = clone(estimator).fit(images, labels).decision_function(new_images)
    np.testing.assert_allclose(decisions, again, atol=1e-8)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(new_images), decisions)
    assert measure_size(model) > 100


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_one_image_per_class_is_enough(estimator, split):
    images, labels, new_images, _ = split
    first = [int(np.flatnonzero(labels == c)[0]) for c in np.unique(labels)]
    model = clone(estimator).fit([images[i] for i in first], labels[first])
    assert model.predict(new_images).shape == (len(new_images),)


@pytest.mark.parametrize(
    "estimator",
    [each for each in ALL if not isinstance(each, PictureBaseline)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_takes_vectors(estimator):
    rng = np.random.default_rng(0)
    centres = 6.0 * rng.normal(size=(3, 40))
    y = np.repeat(["a", "b", "c"], 20)
    X = np.repeat(centres, 20, axis=0) + rng.normal(size=(60, 40))
    assert clone(estimator).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) >= 0.9


@pytest.mark.parametrize("name", ["linear SVM", "RBF SVM", "DDL", "SRC"])
@pytest.mark.filterwarnings("error:The number of unique classes")
def test_many_classes_of_one_image_are_no_regression(name):
    X = np.random.default_rng(0).normal(size=(40, 30))
    assert make_method(name, 0).fit(X, np.arange(40)).predict(X).tolist() == list(range(40))


def test_every_baseline_is_offered_by_name():
    offered = {method.made_by for method in METHODS.values()} - {"DDLCN"}
    assert offered == set(baselines.__all__)
    for name in METHODS:
        if not find_missing(name):
            assert make_method(name, 3).random_state == 3
    with pytest.raises(ValueError, match="no argument 'atoms'"):
        make_method("SRC", 0, atoms=3)
    with pytest.raises(AttributeError, match="no attribute 'XYZ'"):
        _ = baselines.XYZ


def test_importing_the_list_loads_nothing_heavy():
    heavy = "('sklearn', 'numba', 'torch')"
    code = f"import sys, ddlcn.baselines, ddlcn.baselines.registry; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"

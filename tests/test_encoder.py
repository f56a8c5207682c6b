"""DDLCNEncoder: a scikit-learn transformer whose features are the classifier's."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from ddlcn import DDLCNClassifier, DDLCNEncoder, DenseSIFT
from ddlcn.configuration import BRANCH_PARAMETERS

SMALL = {"n_layers": 2, "atoms_per_class": 2, "n_neighbors": 3, "random_state": 0}


def test_its_features_are_the_classifiers(stripes):
    images, labels = stripes
    encoder = DDLCNEncoder(**SMALL).fit(images[:30], labels[:30])
    classifier = DDLCNClassifier(**SMALL).fit(images[:30], labels[:30])
    assert (encoder.transform(images[30:]) != classifier.transform(images[30:])).nnz == 0
    together = DDLCNEncoder(**SMALL).fit_transform(images[:30], labels[:30])
    assert (together != encoder.transform(images[:30])).nnz == 0


def test_in_a_pipeline_and_a_grid_search(stripes):
    images, labels = stripes
    model = make_pipeline(DDLCNEncoder(**SMALL), LinearSVC())
    assert model.fit(images[:30], labels[:30]).score(images[30:], labels[30:]) > 0.9
    grid = GridSearchCV(model, {"ddlcnencoder__beta": [0.05, 0.2]}, cv=2, n_jobs=2).fit(images[:30], labels[:30])
    assert grid.best_score_ > 0.8


def test_several_kinds_of_descriptors(stripes):
    images, labels = stripes
    pair = [DenseSIFT(8, 6), (DenseSIFT(16, 6), {"n_layers": 1})]
    encoder = DDLCNEncoder(pair, **SMALL).fit(images[:30], labels[:30])
    np.testing.assert_allclose(np.square(encoder.transform(images[30:]).toarray()).sum(axis=1), 1.0, atol=1e-5)
    assert len(encoder.branches_) == 2
    assert sum(encoder.branch_weights_) == pytest.approx(1.0)


def test_clone_pickle_and_before_fit(stripes):
    images, labels = stripes
    with pytest.raises(NotFittedError):
        DDLCNEncoder().transform(images)
    encoder = DDLCNEncoder(**SMALL).fit(images[:30], labels[:30])
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.transform(images[30:]) != encoder.transform(images[30:])).nnz == 0
    assert not hasattr(clone(encoder), "branches_")


def test_the_parameters_stand_in_the_order_of_the_pipeline():
    """Descriptors, dictionaries, depth, codes, pooling; then the classifier's; then how it is run."""
    encoder, classifier = (list(inspect.signature(each).parameters) for each in (DDLCNEncoder, DDLCNClassifier))
    assert encoder[0] == "features"
    assert encoder[-3:] == classifier[-3:] == ["n_jobs", "random_state", "verbose"]
    assert set(encoder[1:-3]) == set(BRANCH_PARAMETERS)
    assert classifier[: len(encoder) - 3] == encoder[:-3]

"""SVM and nearest neighbour are scikit-learn's, behind our interface."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from ddlcn.baselines import NearestNeighbour, VectorSVM


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300], X[300:400] / 16.0, y[300:400]


def test_the_same_as_scikit_learn(digits):
    X, y, X_new, _ = digits
    rbf = VectorSVM("rbf", 10.0).fit(X, y)
    assert np.array_equal(rbf.predict(X_new), SVC(C=10.0).fit(X, y).predict(X_new))
    nearest = KNeighborsClassifier(1).fit(normalize(X), y)
    assert np.array_equal(NearestNeighbour().fit(X, y).predict(X_new), nearest.predict(normalize(X_new)))


def test_both_routes_of_the_linear_svm_recognise(digits):
    X, y, X_new, y_new = digits
    assert VectorSVM().fit(X, y).score(X_new, y_new) > 0.85
    assert VectorSVM().fit(X[:60], y[:60]).score(X_new, y_new) > 0.7  # fewer images than dimensions


def test_images_and_vectors_are_not_mixed_up(digits):
    X, y, X_new, _ = digits
    images = X.reshape(-1, 8, 8)
    of_images, of_vectors = VectorSVM().fit(images, y), VectorSVM().fit(X, y)
    assert of_images.predict(X_new.reshape(-1, 8, 8)).shape == (100,)
    with pytest.raises(ValueError, match="was fitted on images"):
        of_images.predict(X_new)
    with pytest.raises(ValueError, match=r"Found array with dim 3|Expected 2D"):
        of_vectors.predict(X_new.reshape(-1, 8, 8))
    assert of_images.fit(X, y).n_features_in_ == 64  # fitted again, on the other kind
    with pytest.raises(ValueError, match="kernel must be one of"):
        VectorSVM("cubic").fit(X, y)

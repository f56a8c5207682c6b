"""The pyramid match kernel: it is what slow loops say, and an SVM on it recognises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from ddlcn import DenseSIFT
from ddlcn.baselines.histogram_kernels import intersect
from ddlcn.baselines.kernel_svm import fit_kernel_svm
from ddlcn.baselines.spatial_pyramid import SpatialPyramidKernel
from ddlcn.images import name_images
from ddlcn.pooling import assign_cells


def match_pyramids(a, b, levels):
    """Lazebnik's kernel as the paper has it: matches I^l of each level, new ones at level l weighted 1 / 2^(L - l)."""
    matches = [np.minimum(x, y).sum() for x, y in zip(a, b, strict=True)]  # coarse to fine
    last = len(levels) - 1
    kernel = matches[last]
    for level in range(last):
        kernel += (matches[level] - matches[level + 1]) / 2 ** (last - level)
    return kernel


def test_the_kernel_is_the_pyramid_match(stripes):
    images, labels = stripes
    levels = (1, 2, 4)
    model = SpatialPyramidKernel(10, features=DenseSIFT(step=4), random_state=0).fit(images[:12], labels[:12])
    histograms = []
    for described in DenseSIFT(step=4).transform(images[:16]):
        word = ((described.values[:, None] - model.dictionary_) ** 2).sum(axis=2).argmin(axis=1)
        slow = np.zeros((21, 10))
        for cells, j in zip(assign_cells(described.xy, described.image_shape, levels), word, strict=True):
            slow[cells, j] += 1 / len(word)
        histograms.append((slow[:1], slow[1:5], slow[5:]))
    slow_kernel = np.array([[match_pyramids(a, b, levels) for b in histograms[:12]] for a in histograms])
    rows = model._make_encoding().transform(list(name_images(images[:16])), 1)
    np.testing.assert_allclose(intersect(rows, model._bins), slow_kernel, atol=1e-6)
    np.testing.assert_allclose(np.diag(slow_kernel), 1.0)
    np.testing.assert_allclose(
        model.decision_function(images[:16]), slow_kernel @ model.svm_.dual + model.svm_.intercept, atol=1e-5
    )


@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 300])
def test_intersections_are_those_of_a_slow_loop(n_columns):
    rng = np.random.default_rng(0)
    A, B = (rng.random((n, n_columns)) * (rng.random((n, n_columns)) < 0.4) for n in (7, 11))
    fast = intersect(sparse.csr_array(A.astype(np.float32)), np.ascontiguousarray(B.T.astype(np.float32)))
    np.testing.assert_allclose(fast, np.minimum(A[:, None], B).sum(axis=2), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_machines_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % n_classes
    gram, across = X @ X.T, rng.normal(size=(9, 4)) @ X.T
    decisions = fit_kernel_svm(gram, y, n_classes, 1.0).decide(across)
    if n_classes == 2:
        slow = SVC(C=1.0, kernel="precomputed").fit(gram, y).decision_function(across)
    else:
        machines = [SVC(C=1.0, kernel="precomputed").fit(gram, y == c) for c in range(3)]
        slow = np.stack([machine.decision_function(across) for machine in machines], axis=1)
    np.testing.assert_allclose(decisions, slow, atol=1e-9)


def test_recognises_images(stripes):
    images, labels = stripes
    model = SpatialPyramidKernel(64, random_state=0).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) > 0.9
    with pytest.raises(ValueError, match="fitted on images"):
        model.predict(np.zeros((2, 128)))


def test_recognises_vectors():
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    model = SpatialPyramidKernel(random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:800], y[500:800]) > 0.75
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X[500:520]), model.decision_function(X[500:520]))

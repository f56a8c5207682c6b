"""Bags of features: codes and pooling are what they say, and stripes are told apart, as images and as vectors."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from ddlcn import DenseSIFT
from ddlcn.baselines.bag_of_features import KC, LLC, BagOfWords, NearestCodes, ScSPM
from ddlcn.baselines.codebooks import learn_centres, learn_sparse_dictionary
from ddlcn.baselines.histograms import Histograms, SoftAssignment
from ddlcn.baselines.pyramid import SIFTPyramid
from ddlcn.blocks import Encoding, SingleBranch
from ddlcn.coding.lasso import encode_lasso
from ddlcn.images import NamedImage, name_images
from ddlcn.pooling import assign_cells

METHODS = [LLC, ScSPM, KC, BagOfWords, NearestCodes]
SEED = np.random.SeedSequence(0)


@pytest.mark.parametrize("method", METHODS)
def test_recognises_images(method, stripes):
    images, labels = stripes
    model = method(n_atoms=64, random_state=0).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) > 0.9
    assert model.dictionary_.shape == (64, 128)
    with pytest.raises(ValueError, match="fitted on images"):
        model.predict(np.zeros((2, 128)))


@pytest.mark.parametrize("method", METHODS)
def test_recognises_vectors(method):
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    model = method(n_atoms=200, random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:800], y[500:800]) > 0.75
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X[500:520]), model.decision_function(X[500:520]))


@pytest.mark.parametrize("method", METHODS)
def test_small_and_constant_images(method):
    images = np.zeros((2, 16, 16))
    images[1] = np.tile(np.linspace(0, 1, 16), (16, 1))
    model = method(random_state=0).fit(images, ["flat", "ramp"])  # far fewer descriptors than atoms
    assert model.decision_function(images).shape == (2,)
    np.testing.assert_array_equal(model.predict(images), ["flat", "ramp"])


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_model(method, stripes):
    images, labels = stripes
    model = method(n_atoms=32, random_state=3)
    one, two = (clone(model).set_params(n_jobs=n_jobs).fit(images[:12], labels[:12]) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.dictionary_, two.dictionary_)
    np.testing.assert_array_equal(one.decision_function(images), two.decision_function(images))


def test_images_after_vectors(stripes):
    images, labels = stripes
    model = LLC(n_atoms=32, random_state=0).fit(np.eye(4), [0, 0, 1, 1])
    assert model.n_features_in_ == 4
    model.fit(images[:12], labels[:12])
    assert not hasattr(model, "n_features_in_")
    assert len(model.predict(images[:5])) == 5


def test_soft_assignment_is_the_kernel():
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(9, 4)), rng.normal(size=(12, 4))
    codes = SoftAssignment(D, 0.7, 12).encode_block(X)
    K = np.exp(-((X[:, None] - D) ** 2).sum(axis=2) / (2 * 0.7**2))
    np.testing.assert_allclose(codes.values, K / K.sum(axis=1, keepdims=True))
    hard = SoftAssignment(D, 0.7, 1).encode_block(X)
    np.testing.assert_array_equal(hard.indices[:, 0], K.argmax(axis=1))
    np.testing.assert_array_equal(hard.values, 1.0)


def test_histograms_count(stripes):
    images, _ = stripes
    D = np.random.default_rng(0).random((10, 128)).astype(np.float32)
    features = DenseSIFT(step=4)
    block = Histograms(SoftAssignment(D, 1.0, 1), (1, 2, 4))
    encoding = Encoding([SingleBranch(features, block, (1, 2, 4))], [1.0])
    rows = encoding.transform(list(name_images(images[:20])), 1).toarray()
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0, rtol=1e-5)
    for row, described in zip(rows, features.transform(images[:20]), strict=True):
        word = ((described.values[:, None] - D) ** 2).sum(axis=2).argmin(axis=1)
        slow = np.zeros((21, 10))
        for cells, j in zip(assign_cells(described.xy, described.image_shape, (1, 2, 4)), word, strict=True):
            slow[cells, j] += np.array([0.25, 0.25, 0.5]) / len(word)
        np.testing.assert_allclose(row, np.sqrt(slow.ravel()), atol=1e-6)


def test_nearest_codes_is_the_nearest(stripes):
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    model = NearestCodes(n_atoms=40, random_state=0).fit(X[:100], y[:100])
    encoding = model._make_encoding()
    train, test = (encoding.transform([NamedImage("", x) for x in rows], 1).toarray() for rows in (X[:100], X[100:150]))
    np.testing.assert_array_equal(model.predict(X[100:150]), y[:100][cosine_similarity(test, train).argmax(axis=1)])


def test_learning_a_sparse_dictionary_lowers_the_objective():
    rng = np.random.default_rng(1)
    true = normalize(rng.normal(size=(20, 16)))
    codes = rng.normal(size=(3000, 20)) * (rng.random((3000, 20)) < 0.1)
    X = normalize(codes @ true + 0.01 * rng.normal(size=(3000, 16)))

    def objective(D):
        Z = encode_lasso(X, D, 0.05).codes
        return (0.5 * ((X - Z @ D) ** 2).sum() + 0.05 * abs(Z).sum()) / len(X)

    D = learn_sparse_dictionary(X, 20, 0.05, SEED)
    assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-9
    assert objective(D) < 0.7 * objective(X[:20])
    assert objective(D) < 1.15 * objective(true)


def test_codebooks_have_no_more_atoms_than_there_are_descriptors():
    X = np.repeat(np.eye(3), 4, axis=0)
    np.testing.assert_array_equal(np.sort(learn_centres(X, 10, SEED), axis=0), np.sort(np.eye(3), axis=0))
    assert learn_sparse_dictionary(X, 10, 0.1, SEED).shape == (3, 3)


def test_pyramid_keeps_angles(stripes):
    images, _ = stripes
    transformer = SIFTPyramid(n_atoms=32, random_state=0).fit(images[:20])
    vectors = transformer.transform(images)
    assert vectors.dtype == np.float64
    assert vectors.shape[1] <= 20
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    # With as many components as training images nothing of those is lost but the mean.
    pooled = transformer._make_encoding().transform(list(name_images(images[:20])), 1).toarray()
    np.testing.assert_allclose(cosine_similarity(pooled - transformer.mean_), vectors[:20] @ vectors[:20].T, atol=1e-4)

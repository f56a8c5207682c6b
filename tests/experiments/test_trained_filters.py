"""Trained filters: features are the road's, gradients those of finite differences, training lowers the error."""

import numpy as np
import pytest

from ddlcn import DenseSIFT
from ddlcn.blocks import CodedBlock, Encoding, SingleBranch
from ddlcn.datasets import load_dataset
from ddlcn.descriptors import describe
from ddlcn.experiments.filters import FilterBank
from ddlcn.experiments.trained_filters import FilterTraining, Images, make_trained_block, pool_image
from ddlcn.images import name_images
from ddlcn.pooling import assign_cells, count_cells
from ddlcn.svm import LinearSVM, SVMConfig

PYRAMID = (1, 2)
N_CELLS = count_cells(PYRAMID)


def make_images(n=6, seed=0):
    """Made-up descriptors and cells of some images, by their place in the list."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 20, (n, 15, 2))
    return [(np.abs(rng.normal(size=(15, 5))), assign_cells(each, (20, 20), PYRAMID)) for each in xy]


def make_training(sizes, seed=0, n_jobs=1):
    found, rng = make_images(), np.random.default_rng(seed)
    bank = FilterBank(np.concatenate([X for X, _ in found]), sizes, np.random.SeedSequence(seed))
    svm = LinearSVM(rng.normal(size=(3, N_CELLS * bank.n_atoms)), rng.normal(size=3), False, 3)
    config = SVMConfig(3, 2.0, "liblinear", np.ones(3))
    images = Images(range(len(found)), np.arange(len(found)) % 3)
    return bank, FilterTraining(bank, images, found.__getitem__, svm, config, N_CELLS, 5, n_jobs)


@pytest.mark.parametrize("sizes", [(7,), (7, 4), (6, 5, 4)])
def test_gradients_are_those_of_finite_differences(sizes):
    bank, training = make_training(sizes)
    chosen, loss = np.arange(6), training._loss
    gradients, error = training.measure(chosen)
    arrays = [training._coef, training._intercept, *[each for layer in bank.layers for each in layer]]

    def objective():
        penalty = sum(np.sum(each**2) for each in arrays[:2])
        return training.measure(chosen)[1] + 0.5 * loss.penalty * penalty

    assert error > 0
    rng, step = np.random.default_rng(1), 1e-6
    for array, gradient in zip(arrays, gradients, strict=True):
        assert array.shape == gradient.shape
        direction = rng.normal(size=array.shape)
        array += step * direction
        above = objective()
        array -= 2 * step * direction
        below = objective()
        array += step * direction
        assert (above - below) / (2 * step) == pytest.approx(np.sum(gradient * direction), rel=1e-4, abs=1e-8)


def test_threads_change_nothing_and_the_error_falls():
    results = []
    for n_jobs in (1, 3):
        bank, training = make_training((7, 4), n_jobs=n_jobs)
        before = training.measure(np.arange(6))[1]
        training.run(np.random.SeedSequence(3))
        assert training.measure(np.arange(6))[1] < before
        results.append(bank.layers)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_features_are_those_of_the_encoding(digit_folder):
    data, sift = load_dataset(str(digit_folder)), DenseSIFT(step=4)
    items = list(name_images(data.images[:5]))
    found = [describe(sift, item) for item in items]
    bank = FilterBank(np.concatenate([d.values for d in found]), (30, 8), np.random.SeedSequence(0))
    block = CodedBlock(bank, np.ones(38), None, PYRAMID)
    encoded = Encoding([SingleBranch(sift, block, PYRAMID)], (1.0,)).transform(items, 1).toarray()
    for d, row in zip(found, encoded, strict=True):
        image = pool_image(bank.layers, d.values, assign_cells(d.xy, d.image_shape, PYRAMID), N_CELLS)
        np.testing.assert_allclose(image.feature.ravel(), row, atol=1e-6)


def test_a_block_is_trained_and_leaves_the_bank_alone(digit_folder):
    data, sift = load_dataset(str(digit_folder)), DenseSIFT(step=6)
    items = list(name_images(data.images))
    sample = np.concatenate([describe(sift, item).values for item in items[:20]])
    bank = FilterBank(sample, (6,), np.random.SeedSequence(0))
    before = bank.layers[0][0].copy()
    n_classes = int(data.labels.max()) + 1
    config, seed = SVMConfig(n_classes, 1.0, "liblinear", np.ones(n_classes)), np.random.SeedSequence(1)
    blocks = [make_trained_block(bank, sift, PYRAMID, Images(items, data.labels), config, seed, n) for n in (1, 2)]
    np.testing.assert_array_equal(bank.layers[0][0], before)
    assert np.abs(blocks[0].coder.layers[0][0] - before).max() > 1e-3
    np.testing.assert_array_equal(blocks[0].coder.layers[0][0], blocks[1].coder.layers[0][0])

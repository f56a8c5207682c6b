"""LP-beta: the mixture solves its linear programme, kernels are what slow loops say, and it recognises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import clone

from ddlcn import DenseSIFT
from ddlcn.baselines.image_kernels import (
    KERNELS,
    BinaryPatterns,
    Colours,
    Gradients,
    ImageKernel,
    Words,
    compare_neighbours,
)
from ddlcn.baselines.inputs import Pixels
from ddlcn.baselines.kernel_svm import fit_kernel_svm
from ddlcn.baselines.lp_beta import LPBeta, mix_decisions

SEED = np.random.SeedSequence(0)
FEW = ((Words(20, features=DenseSIFT(step=8)), "chi2"), "gradients", "pixels")


@pytest.fixture(scope="module")
def decisions():
    """Decisions (40, 4, 5) of five machines that are right ever more rarely, and the labels."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    signal = np.eye(4)[y][:, :, None] * np.array([1.5, 1.2, 0.8, 0.3, 0.0])
    return signal + rng.normal(size=(40, 4, 5)), y


def measure_objective(decisions, y, beta, nu):
    """The mean of the nu n smallest margins, for nu n a whole number."""
    mixed = decisions @ beta
    own = mixed[np.arange(len(y)), y]
    others = np.where(np.arange(mixed.shape[1]) == y[:, None], -np.inf, mixed).max(axis=1)
    return np.sort(own - others)[: round(nu * len(y))].mean()


def solve_at_once(decisions, y, nu):
    """The whole programme, row by row: its optimum."""
    n, n_classes, n_kernels = decisions.shape
    rows = []
    for i in range(n):
        for c in range(n_classes):
            if c != y[i]:
                row = np.zeros(n_kernels + 1 + n)
                row[:n_kernels] = decisions[i, c] - decisions[i, y[i]]
                row[n_kernels], row[n_kernels + 1 + i] = 1.0, -1.0
                rows.append(row)
    cost = np.concatenate([np.zeros(n_kernels), [-1.0], np.full(n, 1 / (nu * n))])
    total = np.concatenate([np.ones(n_kernels), np.zeros(n + 1)])[None]
    bounds = [(0, None)] * n_kernels + [(None, None)] + [(0, None)] * n
    return -linprog(cost, np.array(rows), np.zeros(len(rows)), total, [1.0], bounds).fun


@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_the_mixture_solves_the_whole_programme(decisions, nu):
    F, y = decisions
    beta, objective = mix_decisions(F, y, nu)
    assert beta.min() >= 0
    assert beta.sum() == pytest.approx(1.0)
    assert objective == pytest.approx(solve_at_once(F, y, nu), abs=1e-6)
    assert measure_objective(F, y, beta, nu) == pytest.approx(objective, abs=1e-6)
    for other in [np.full(5, 0.2), *np.random.default_rng(1).dirichlet(np.ones(5), 200)]:
        assert measure_objective(F, y, other, nu) <= objective + 1e-6


def test_a_machine_that_is_always_right_gets_all_the_weight():
    rng = np.random.default_rng(2)
    y = np.arange(30) % 3
    noise = np.clip(rng.normal(size=(30, 3, 4)), -0.4, 0.4)
    noise[:, :, 2] = np.eye(3)[y]
    np.testing.assert_allclose(mix_decisions(noise, y, 0.3).beta, [0, 0, 1, 0])


def test_chi2_and_gaussian_are_those_of_slow_loops(stripes):
    images, _ = stripes
    patterns = BinaryPatterns().transform(images).toarray().astype(np.float64)
    a, b = patterns[:, None], patterns[None, :8]
    chi2 = ((a - b) ** 2 / np.where(a + b > 0, a + b, 1)).sum(axis=2)
    kernel = ImageKernel(BinaryPatterns(), "chi2")
    np.testing.assert_allclose(kernel.fit(images[:8], SEED, 1), np.exp(-chi2[:8] / chi2[:8].mean()), atol=1e-5)
    np.testing.assert_allclose(kernel.transform(images), np.exp(-chi2 / chi2[:8].mean()), atol=1e-5)
    rows = Colours().transform(images)
    squares = ((rows[:, None] - rows[None, :8]) ** 2).sum(axis=2)
    kernel = ImageKernel(Colours(), "gaussian", 0.5)
    kernel.fit(images[:8], SEED, 1)
    np.testing.assert_allclose(kernel.transform(images), np.exp(-2 * squares / squares[:8].mean()), atol=1e-9)


def test_patterns_are_counted_where_they_are():
    rng = np.random.default_rng(3)
    grey = rng.integers(0, 5, (9, 12)) / 4
    around = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
    slow = [
        [sum((grey[y + dy, x + dx] >= grey[y, x]) << k for k, (dy, dx) in enumerate(around)) for x in range(1, 11)]
        for y in range(1, 8)
    ]
    np.testing.assert_array_equal(compare_neighbours(grey), slow)
    flat_left = np.zeros((18, 34))
    flat_left[:, 17:] = rng.random((18, 17))
    row = BinaryPatterns(pyramid=(1, 2)).transform([flat_left]).toarray().reshape(5, 59)
    np.testing.assert_allclose(row.sum(axis=1), [0.5, 0.125, 0.125, 0.125, 0.125])
    assert (np.count_nonzero(row[1:], axis=1) == 1).tolist() == [True, False, True, False]


@pytest.mark.parametrize("source", [Words(20), BinaryPatterns()])
def test_histograms_sum_to_one(stripes, source):
    images, _ = stripes
    rows = source.fit_transform(images[:6])
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-5)
    assert rows.min() >= 0


@pytest.mark.parametrize("name", list(KERNELS))
def test_every_kernel_is_one(stripes, name):
    """Symmetric, 1 on the diagonal but for rounding, no negative eigenvalue, and the same for new images."""
    images, _ = stripes
    kernel = ImageKernel(*KERNELS[name])
    gram = kernel.fit(images[:10], SEED, 1)
    np.testing.assert_allclose(gram, gram.T, atol=1e-5)
    np.testing.assert_allclose(np.diag(gram), 1.0, atol=1e-5)
    assert np.linalg.eigvalsh(gram).min() > -1e-4
    np.testing.assert_allclose(kernel.transform(images[4:6]), gram[4:6], atol=1e-5)


def test_colours_and_small_pictures():
    red, grey = np.zeros((2, 2, 3)), np.full((1, 5), 0.5)
    red[..., 0] = 1.0
    np.testing.assert_allclose(Colours(2).transform([red])[0].reshape(4, 3), [[1, 0, 0]] * 4)
    for source in (Colours(), Gradients(), BinaryPatterns(), Words(features=DenseSIFT(12))):
        rows = source.fit_transform([red, grey])
        assert np.isfinite(rows.toarray() if hasattr(rows, "toarray") else rows).all()


def test_with_one_kernel_it_is_the_svm(stripes):
    images, labels = stripes
    model = LPBeta([(Pixels(), "linear")], C=1.0).fit(images[:30], labels[:30])
    assert model.beta_.tolist() == [1.0]
    kernel = ImageKernel(Pixels(), "linear")
    gram = kernel.fit(images[:30], SEED, 1)
    svm = fit_kernel_svm(gram, np.unique(labels[:30], return_inverse=True)[1], 3, 1.0)
    np.testing.assert_allclose(
        model.decision_function(images[30:]), svm.decide(kernel.transform(images[30:])), atol=1e-9
    )


def test_recognises_images_and_says_what_it_used(stripes):
    images, labels = stripes
    model = LPBeta(FEW, random_state=0).fit(images[:30], labels[:30])
    assert model.score(images[30:], labels[30:]) > 0.9
    assert model.beta_.shape == (3,)
    assert model.beta_.sum() == pytest.approx(1.0)
    assert len(model._used) == np.count_nonzero(model.beta_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(images[30:]), model.decision_function(images[30:]))
    with pytest.raises(ValueError, match="fitted on images"):
        model.predict(np.zeros((2, 128)))
    two = labels != "along"
    assert clone(model).fit(images[:30][two[:30]], labels[:30][two[:30]]).decision_function(images).shape == (60,)


def test_wrong_arguments_are_refused(stripes):
    images, labels = stripes
    for wrong, words in (
        ({"nu": 1.5}, "nu must be at most 1"),
        ({"kernels": "pixels"}, "kernels must be a sequence"),
        ({"kernels": ("pixel",)}, "kernels must be one of"),
        ({"kernels": ((Pixels(), "cosine"),)}, "measure must be one of"),
        ({"kernels": ((Pixels(), "chi2"),)}, "rows of Pixels are no histograms"),
    ):
        with pytest.raises(ValueError, match=words):
            LPBeta(**wrong).fit(images[:6], labels[:6])

"""The gradient of joint training against finite differences, on tiny networks of both depths."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn import Descriptors
from ddlcn.blocks import Branch, Encoding
from ddlcn.coding.first_order import FirstOrderModel
from ddlcn.configuration import configure
from ddlcn.images import NamedImage
from ddlcn.joint import HingeLoss, JointConfig, JointTraining
from ddlcn.svm import LinearSVM, SVMConfig

M, N_CLASSES = 6, 3
SIZES = (7, 5, 4)


class GivenDescriptors:
    """An "image" is its descriptors (n, m): they lie along a diagonal of 16 x 16 pixels."""

    def transform(self, images):
        return [
            Descriptors(np.asarray(each), np.linspace(1, 14, len(each))[:, None].repeat(2, axis=1), (16, 16))
            for each in images
        ]


def make_training(
    n_layers=1, depth="augment", first_order=False, pool_power=1.0, n_neighbors=4, n_branches=1, mu=0.7, seed=0
) -> JointTraining:
    rng = np.random.default_rng(seed)
    parameters = {
        "n_layers": n_layers, "atoms_per_class": 1, "shared_atoms": 0, "dictionary_images": None, "l1_radius": 0.35,
        "deep_atoms": SIZES[1:n_layers], "depth": depth, "layer_weights": None, "first_order": 0,
        "n_neighbors": n_neighbors, "beta": 0.08, "pyramid": (1, 2), "pool_power": pool_power,
    }  # fmt: skip
    branches = []
    for _ in range(n_branches):
        (config,) = configure(GivenDescriptors(), parameters).branches
        dictionaries = [rng.normal(size=(size, M)) for size in SIZES[:n_layers]]
        model = None
        if first_order:
            model = FirstOrderModel(
                rng.normal(size=(5, M)), rng.normal(size=(M, 3)), rng.normal(size=M), rng.normal(size=(5, 3)),
                rng.uniform(0.5, 1, (5, 3)), rng.dirichlet(np.ones(5)), 0.1,
            )  # fmt: skip
        branches.append(Branch(config, config.descriptors, dictionaries, model, np.empty(0), 0.0))
    weights = (1 / n_branches,) * n_branches
    images = [rng.normal(size=(9, M)) for _ in range(10)]
    items = [NamedImage(str(i), image) for i, image in enumerate(images)]
    n_columns = Encoding(branches, weights).n_columns
    svm = LinearSVM(rng.normal(size=(N_CLASSES, n_columns)), rng.normal(size=N_CLASSES), False, N_CLASSES)
    loss = HingeLoss.prepare(np.arange(10) % N_CLASSES, SVMConfig(N_CLASSES, 2.0, "liblinear", np.array([1.0, 2, 1])))
    config = JointConfig(epochs=1, mu=mu)
    return JointTraining(branches, weights, svm, items, loss, config, np.random.SeedSequence(0), n_jobs=1)


def measure(training: JointTraining) -> tuple[list[np.ndarray], float]:
    """Gradients and the value of the whole objective, always on the same descriptors."""
    gradients, (loss, error) = training.measure(np.arange(10), np.random.default_rng(3))
    coef, intercept, *_ = training._adam.parameters
    penalty = 0.5 * training._loss.penalty * (np.sum(coef**2) + np.sum(intercept**2))
    return gradients, loss + penalty + training.config.mu * error


CASES = [
    {"n_layers": n_layers, "depth": depth, "first_order": first_order, "pool_power": power}
    for n_layers in (1, 2, 3)
    for depth in ("augment", "residual")
    for first_order in (False, True)
    for power in (1.0, 0.5)
] + [{"n_layers": 2, "depth": "residual", "n_branches": 2}, {"n_neighbors": None}, {"mu": 0.0}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(f"{k}={v}" for k, v in case.items()))
def test_the_gradient_is_that_of_finite_differences(case):
    training = make_training(**case)
    gradients, _ = measure(training)
    rng = np.random.default_rng(1)
    for parameter, gradient in zip(training._adam.parameters, gradients, strict=True):
        direction = rng.normal(size=parameter.shape)
        before, step = parameter.copy(), 1e-6
        values = []
        for sign in (1.0, -1.0):
            parameter[:] = before + sign * step * direction
            values.append(measure(training)[1])
        parameter[:] = before
        expected = (values[0] - values[1]) / (2 * step)
        found = float(np.sum(gradient * direction))
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-7 * np.abs(gradient).sum())

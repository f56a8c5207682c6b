"""Adam: equal to the textbook's formula, whatever the number of threads; steps fall to zero."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.joint.optimise import NUMBERS_PER_TASK, TINY, Adam

SHAPES = ((NUMBERS_PER_TASK // 8 + 3, 17), (5,))


def draw(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in SHAPES]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_it_is_the_formula_of_the_textbook(n_jobs):
    begin, rate, n_steps = draw(0), 0.05, 10
    adam = Adam([each.copy() for each in begin], rate, n_steps)
    expected = [each.copy() for each in begin]
    means, squares = [0.0] * len(SHAPES), [0.0] * len(SHAPES)
    for t in range(1, 4):
        gradients = draw(t)
        adam.update(gradients, n_jobs)
        own_rate = rate * (1.0 + np.cos(np.pi * (t - 1) / n_steps)) / 2.0
        for i, gradient in enumerate(gradients):
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
            size = np.sqrt(np.mean(begin[i] ** 2))
            unbiased_mean, unbiased_square = means[i] / (1.0 - 0.9**t), squares[i] / (1.0 - 0.999**t)
            expected[i] -= own_rate * size * unbiased_mean / (np.sqrt(unbiased_square) + TINY)
    for found, wanted in zip(adam.parameters, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_result_does_not_depend_on_threads():
    alone, together = (Adam(draw(0), 0.05, 4) for _ in range(2))
    for t in range(1, 4):
        alone.update(draw(t), 1)
        together.update(draw(t), 4)
    for a, b in zip(alone.state, together.state, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_last_step_is_nearly_zero():
    adam = Adam(draw(0), 0.05, 100)
    moved = []
    for _ in range(100):
        before = adam.parameters[0].copy()
        adam.update(draw(1))
        moved.append(np.abs(adam.parameters[0] - before).mean())
    assert moved[-1] < 1e-3 * moved[0]

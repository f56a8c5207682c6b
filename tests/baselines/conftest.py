"""What tests of several families of methods share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import normalize


@pytest.fixture(scope="module")
def faces():
    """Three classes of vectors (20 each), each of mixtures of two of its own, and new ones of the same."""
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(3, 2, 20))
    y = np.repeat([0, 1, 2], 20)

    def draw():
        return np.concatenate([rng.random((20, 2)) @ plane for plane in planes]) + 0.1 * rng.normal(size=(60, 20))

    return normalize(draw()), y, draw()

"""Whether a difference is more than chance."""

from __future__ import annotations

import numpy as np
import pytest

from ddlcn.utils.statistics import is_surely_better


@pytest.mark.parametrize(
    ("gained", "lost", "sure"),
    [(0, 0, False), (4, 0, False), (5, 0, True), (9, 4, False), (12, 3, True), (3, 12, False)],
)
def test_ahead_by_more_than_chance(gained, lost, sure):
    """A one-sided sign test: five to nothing has a probability of 1/32, four to nothing of 1/16."""
    right = np.array([True] * gained + [False] * lost + [True] * 30)
    reference = np.array([False] * gained + [True] * lost + [True] * 30)
    assert is_surely_better(right, reference) == sure

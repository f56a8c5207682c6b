"""How sure a mean over a few draws is."""

from __future__ import annotations

from math import sqrt

CONFIDENCE = 0.95


def half_interval(sd: float | None, n: int) -> float:
    """Half the width of the 95 % interval (Student's) of a mean of n values; 0 for a single one."""
    if n < 2 or sd is None:
        return 0.0
    from scipy import stats

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * sd / sqrt(n))

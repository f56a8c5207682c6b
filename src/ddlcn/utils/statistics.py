"""How sure a mean over a few draws is, and whether a difference is more than chance."""

from __future__ import annotations

from math import sqrt
from typing import Any

from numpy.typing import NDArray

CONFIDENCE = 0.95


def half_interval(sd: float | None, n: int) -> float:
    """Half the width of the 95 % interval (Student's) of a mean of n values; 0 for a single one."""
    if n < 2 or sd is None:
        return 0.0
    from scipy import stats

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * sd / sqrt(n))


def is_surely_better(right: NDArray[Any], reference: NDArray[Any], confidence: float = CONFIDENCE) -> bool:
    """Whether more images (n,) are recognised than by another method, by more than chance would have it.

    A one-sided sign test over the images that only one of the two recognises: with a handful of images, being ahead by
    one or two says nothing.
    """
    from scipy.stats import binom

    gained, lost = int((right & ~reference).sum()), int((reference & ~right).sum())
    return gained > lost and bool(binom.sf(gained - 1, gained + lost, 0.5) < 1 - confidence)

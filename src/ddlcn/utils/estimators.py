"""What scikit-learn is told of estimators that take images."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils import Tags


class TakesImages(BaseEstimator):  # type: ignore[misc]
    """Base of estimators whose items are images: arrays of three dimensions or paths, never rows of numbers."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        return tags

"""The base classes of all baselines. In: images or vectors, and labels. Out: decisions. A method adds `_learn` and
`_decide`.

`VectorBaseline` is for methods on one vector per image: `features` names the transformer (`baselines.inputs`); a matrix
(n, m), one row per image, is used directly. `PictureBaseline` is for methods on pixels, with pictures of one size.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ddlcn.baselines.inputs import is_matrix, make_input, read_stack
from ddlcn.images import name_images
from ddlcn.svm import pick_class
from ddlcn.utils.estimators import TakesImages
from ddlcn.utils.labels import check_labels
from ddlcn.utils.validation import seed_sequence

Array = NDArray[Any]
Labels = NDArray[np.intp]


class Baseline(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fit, predict and decide, by three methods.

    `_take(images, fitting)` : the n items that the method works on.
    `_learn(items, y)` : learn from n items and class indices y (n,) in 0 .. len(self.classes_) - 1.
    `_decide(items)` : scores (n, n_classes); the largest wins. Or (n,) for two classes, positive for the second.
    """

    classes_: Array

    @abstractmethod
    def _take(self, images: Any, fitting: bool) -> Any: ...

    @abstractmethod
    def _learn(self, items: Any, y: Labels) -> None: ...

    @abstractmethod
    def _decide(self, items: Any) -> Array: ...

    def fit(self, images: Any, y: Any) -> Baseline:
        """Learn from images (or vectors, one per row) and their labels y (n,)."""
        if y is None:  # the wording that scikit-learn's checks expect
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        items = self._take(images, fitting=True)
        if np.asarray(y).dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        y = column_or_1d(y, warn=True)
        with warnings.catch_warnings():  # with one image per class scikit-learn assumes regression
            warnings.filterwarnings("ignore", "The number of unique classes")
            check_classification_targets(y)
            self.classes_, indices = check_labels(y, len(items))
            self._learn(items, indices)
        return self

    def decision_function(self, images: Any) -> Array:
        """Scores (n, n_classes), the largest wins; for two classes (n,), positive for the second."""
        check_is_fitted(self)
        scores = self._decide(self._take(images, fitting=False))
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and len(self.classes_) == 2 else scores

    def predict(self, images: Any) -> Array:
        """Labels (n,)."""
        scores = self.decision_function(images)
        labels: Array = self.classes_[pick_class(scores)]
        return labels

    def _spawn(self, n: int) -> list[np.random.SeedSequence]:
        """Return n seeds from `random_state`; the first is for the input."""
        return seed_sequence(getattr(self, "random_state", None)).spawn(n)


class VectorBaseline(Baseline):
    """A baseline on one vector per image; `_take` returns a matrix (n, m) of float64.

    Its constructor has `features`: "pixels", "random", "eigen", "hog", "pyramid", "cnn" or a file of vectors (see
    `baselines.inputs`), or a transformer of images. Not used where vectors are passed in.
    """

    features: Any

    def _take(self, images: Any, fitting: bool) -> Array:
        if is_matrix(images) if fitting else not hasattr(self, "input_"):
            return np.ascontiguousarray(validate_data(self, images, reset=fitting, dtype=np.float64))
        if fitting:
            seed = int(self._spawn(1)[0].generate_state(1)[0])
            self.input_ = make_input(self.features, seed, getattr(self, "n_jobs", None)).fit(images)
        elif is_matrix(images):
            raise ValueError(f"this {type(self).__name__} was fitted on images: pass images, not a matrix of vectors")
        return np.ascontiguousarray(self.input_.transform(images), np.float64)

    def fit(self, images: Any, y: Any) -> Baseline:
        """Learn from images, or vectors (n, m), and their labels y (n,)."""
        for name in ("input_", "n_features_in_", "feature_names_in_"):  # from an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        return super().fit(images, y)


class PictureBaseline(Baseline, TakesImages):
    """A baseline on pictures of one size; `_take` returns them as (n, H, W) of float32 in [0, 1].

    Its constructor has `image_shape`: (H, W), or None for the shape of the first training image.
    """

    image_shape: tuple[int, int] | None

    def _take(self, images: Any, fitting: bool) -> Array:
        if fitting:
            first = next(iter(name_images(images)))[1] if self.image_shape is None else None
            self.image_shape_ = self.image_shape or read_stack([first], None).shape[1:]
        return read_stack(images, self.image_shape_, getattr(self, "n_jobs", None))

"""The `y` of a classifier: checked, in one sentence where something is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def check_labels(y: Any, n_images: int) -> tuple[Array, NDArray[np.intp]]:
    """Classes (n_classes,) and class indices (n_images,)."""
    if y is None:
        raise ValueError("y is missing: pass one label per image; to fit means to learn from labelled images")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one label per image, a flat sequence; got shape {labels.shape}")
    if len(labels) != n_images:
        raise ValueError(f"y has {len(labels)} labels for {n_images} images: pass one label per image")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity: give every image a label, or leave it out")
    classes, indices = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes[0]!r}): at least two classes are needed")
    return classes, indices


def match_labels(y: Any, classes: Array, n_images: int) -> Array:
    """Labels (n_images,) of the kind that a fitted model has; they may be new."""
    labels = np.asarray(y)
    if labels.dtype.kind != classes.dtype.kind:
        raise ValueError(f"labels are {labels.dtype.name}, the model's classes {classes.dtype.name}: pass the same")
    if len(labels) != n_images:
        raise ValueError(f"y has {len(labels)} labels for {n_images} images: pass one label per image")
    return labels

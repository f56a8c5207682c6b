"""Decision values in, classes out; and decision values from inner products alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pick_class(decisions: Array) -> NDArray[np.intp]:
    """The class index (n,) of decision values (n, classes), or (n,) for two classes, positive for the second."""
    if decisions.ndim == 1:
        return (decisions > 0).astype(np.intp)
    return np.asarray(decisions.argmax(axis=1))


def to_logits(decisions: Array) -> Array:
    """Decision values with a column for every class, (n, classes), also for two classes."""
    return np.column_stack([-decisions, decisions]) if decisions.ndim == 1 else decisions


def decide_by_dual(gram: Array, dual: Array) -> Array:
    """Decision values of images from their inner products with the training images.

    Parameters
    ----------
    gram : ndarray (n, training images)
    dual : ndarray (training images, rows)
        From `fit_dual`.

    Returns
    -------
    decisions : ndarray (n, classes), or (n,) for two classes
    """
    values: Array = gram @ dual + dual.sum(axis=0)
    return values[:, 0] if values.shape[1] == 1 else values

"""Principal components of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.utils.validation import check_count

Array = NDArray[Any]


def find_components(X: Array, n_components: int) -> tuple[Array, Array]:
    """Mean (m,) and principal components (n_components, m) of rows X (n, m), from the smaller Gram matrix."""
    n = min(check_count("n_components", n_components), min(X.shape))
    mean = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    centred = X - mean
    if len(X) > X.shape[1]:
        _, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
        return mean, np.ascontiguousarray(vectors[:, ::-1][:, :n].T).astype(X.dtype)
    values, vectors = np.linalg.eigh((centred @ centred.T).astype(np.float64))  # (n, n)
    order = np.argsort(values)[::-1][:n]
    order = order[values[order] > 1e-10 * max(values.max(), 1e-300)]
    components = (vectors[:, order] / np.sqrt(values[order])).T.astype(X.dtype) @ centred
    return mean, components

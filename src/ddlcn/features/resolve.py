"""The `features` of a classifier: a name or an object in, the object that describes images out."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ddlcn.features.dense_sift import DenseSIFT


def resolve_features(features: Any) -> Any:
    """The object that describes images; a copy of the user's, so that a fitted model does not change with it."""
    if isinstance(features, str) and features == "sift":
        return DenseSIFT()
    if isinstance(features, str) or not hasattr(features, "transform"):
        raise ValueError(
            f"features must be 'sift' or an object with transform(images), such as DenseSIFT(step=4); got {features!r}"
        )
    return clone(features, safe=False)

"""The `features` of a classifier: names or objects in, the objects that describe images out."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ddlcn.features.conv_map import ConvMap
from ddlcn.features.dense_sift import DenseSIFT

# What begins the name of a network in a file.
ONNX = "onnx:"


def resolve_features(features: Any) -> Any:
    """The object that describes images; a copy of the user's, so that a fitted model does not change with it."""
    if isinstance(features, str):
        if features == "sift":
            return DenseSIFT()
        if features == "cnn":
            return ConvMap()
        if features.startswith(ONNX) and len(features) > len(ONNX):
            return ConvMap(features[len(ONNX) :])
    elif hasattr(features, "transform"):
        return clone(features, safe=False)
    raise ValueError(
        f"features must be 'sift', 'cnn', 'onnx:FILE.onnx', a list of such, or an object with transform(images) such "
        f"as DenseSIFT(step=4); got {features!r}"
    )


def resolve_all_features(features: Any) -> list[Any]:
    """One object for every kind of descriptor: of a list its members', else one."""
    if not isinstance(features, list | tuple):
        return [resolve_features(features)]
    if not features:
        raise ValueError("features is empty: name at least one, such as ['sift', 'cnn']")
    return [resolve_features(each) for each in features]

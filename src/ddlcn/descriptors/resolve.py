"""One kind of descriptor, by name or as an object, to the object that describes images."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ddlcn.descriptors.conv_map import ConvMap
from ddlcn.descriptors.dense_sift import DenseSIFT

# How the name of a backbone in a file begins.
ONNX = "onnx:"


def resolve_descriptors(features: Any) -> Any:
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

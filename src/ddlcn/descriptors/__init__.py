"""Image -> local descriptors: dense SIFT, dense colour, maps of pretrained backbones (docs/method.md)."""

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.conv_map import ConvMap
from ddlcn.descriptors.dense_colour import DenseColour
from ddlcn.descriptors.dense_sift import DenseSIFT
from ddlcn.descriptors.resolve import resolve_descriptors
from ddlcn.descriptors.sampling import describe_by_class, sample_descriptors
from ddlcn.descriptors.store import describe, describe_ahead, extract, keep_descriptors, keep_pixels

__all__ = [
    "ConvMap",
    "DenseColour",
    "DenseSIFT",
    "Descriptors",
    "describe",
    "describe_ahead",
    "describe_by_class",
    "extract",
    "keep_descriptors",
    "keep_pixels",
    "resolve_descriptors",
    "sample_descriptors",
]

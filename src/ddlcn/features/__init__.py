"""Image -> local descriptors: reading pictures, dense SIFT, maps of networks (DESIGN 2, "Descriptors")."""

from __future__ import annotations

from ddlcn.features.by_class import describe, describe_by_class, sample_descriptors
from ddlcn.features.conv_map import ConvMap
from ddlcn.features.dense_sift import DenseSIFT
from ddlcn.features.descriptors import Descriptors
from ddlcn.features.images import ImageReadError, name_images, read_image, read_images
from ddlcn.features.resolve import resolve_all_features, resolve_features

__all__ = [
    "ConvMap",
    "DenseSIFT",
    "Descriptors",
    "ImageReadError",
    "describe",
    "describe_by_class",
    "name_images",
    "read_image",
    "read_images",
    "resolve_all_features",
    "resolve_features",
    "sample_descriptors",
]

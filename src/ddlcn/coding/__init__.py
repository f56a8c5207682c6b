"""Descriptors + atoms -> codes: the exact locality coder, and depth."""

from ddlcn.coding.augmented import augment, encode_layers, path_coefficients, path_weights, reconstruct
from ddlcn.coding.locality import CodeBlock, CodingResult, LocalityCoder, encode

__all__ = [
    "CodeBlock",
    "CodingResult",
    "LocalityCoder",
    "augment",
    "encode",
    "encode_layers",
    "path_coefficients",
    "path_weights",
    "reconstruct",
]

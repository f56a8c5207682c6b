"""Descriptors + atoms -> codes: the exact locality coder, and depth."""

from ddlcn.coding.locality import CodingResult, LocalityCoder, encode

__all__ = ["CodingResult", "LocalityCoder", "encode"]

"""Recognise images from a few labelled examples per class.

image -> local descriptors -> dictionaries and codes, n layers -> spatial-pyramid max pooling -> linear SVM

The public names are loaded on first use, so that `import ddlcn` and `ddlcn --help` cost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier, load_model
    from ddlcn.coding import encode, reconstruct
    from ddlcn.datasets import load_folder
    from ddlcn.descriptors import ConvMap, DenseColour, DenseSIFT, Descriptors
    from ddlcn.dictionaries import learn_dictionary
    from ddlcn.encoder import DDLCNEncoder

__version__ = "0.1.0"

_HOME = {
    "DDLCNClassifier": "ddlcn.classifier",
    "DDLCNEncoder": "ddlcn.encoder",
    "ConvMap": "ddlcn.descriptors",
    "DenseColour": "ddlcn.descriptors",
    "DenseSIFT": "ddlcn.descriptors",
    "Descriptors": "ddlcn.descriptors",
    "encode": "ddlcn.coding",
    "learn_dictionary": "ddlcn.dictionaries",
    "load_folder": "ddlcn.datasets",
    "load_model": "ddlcn.classifier",
    "reconstruct": "ddlcn.coding",
}

__all__ = [
    "ConvMap",
    "DDLCNClassifier",
    "DDLCNEncoder",
    "DenseColour",
    "DenseSIFT",
    "Descriptors",
    "__version__",
    "encode",
    "learn_dictionary",
    "load_folder",
    "load_model",
    "reconstruct",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ddlcn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__

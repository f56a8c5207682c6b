"""The methods that DDLCN is compared with, one file per family, behind the interface of `DDLCNClassifier`.

Each takes images (or vectors, one per row) and labels. Names are the papers' acronyms, loaded on first use.
`docs/add_a_baseline.md` explains how to add one.
"""

from __future__ import annotations

import importlib
from typing import Any

# The module of each method. A new one is a file, a line here and a line in `ddlcn.baselines.registry`.
_MODULES = {
    "ADDL": "analysis",
    "BagOfWords": "bag_of_features",
    "CRC": "collaborative",
    "ConvolutionalClustering": "convolutional_clustering",
    "DBDL": "bayesian",
    "DCN": "two_layer",
    "DDL": "ddl",
    "DDL2019": "deep_network",
    "DKSVD": "ksvd",
    "DLCOPAR": "copar",
    "EasyDL": "ensemble",
    "EmbedCNN": "embed_cnn",
    "FDDL": "fisher",
    "JBDC": "bayesian",
    "KC": "bag_of_features",
    "KSVD": "ksvd",
    "LCKSVD1": "ksvd",
    "LCKSVD2": "ksvd",
    "LLC": "bag_of_features",
    "LPBeta": "lp_beta",
    "LRSDL": "fisher",
    "MBAP": "proximal",
    "MDDL": "multi_layer",
    "MHMP": "matching_pursuit",
    "NDL": "nonlinear",
    "NearestCodes": "bag_of_features",
    "NearestNeighbour": "plain",
    "PCANet": "pcanet",
    "RRC_L1": "robust",
    "SNDL": "nonlinear",
    "SRC": "collaborative",
    "ScSPM": "bag_of_features",
    "SmallCNN": "cnn",
    "SpatialPyramidKernel": "spatial_pyramid",
    "SupGraphDL": "graph_ksvd",
    "TLCC": "two_layer",
    "VectorSVM": "plain",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'ddlcn.baselines' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ddlcn.baselines.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

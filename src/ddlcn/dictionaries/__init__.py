"""Descriptors -> atoms: one dictionary, the class-wise layer 1, and the layers learned on the atoms below."""

from ddlcn.dictionaries.layers import learn_deep_layers, learn_layer1, resolve_deep_atoms
from ddlcn.dictionaries.learn import DictionaryResult, learn_dictionary
from ddlcn.dictionaries.residual import learn_residual_layers

__all__ = [
    "DictionaryResult",
    "learn_deep_layers",
    "learn_dictionary",
    "learn_layer1",
    "learn_residual_layers",
    "resolve_deep_atoms",
]

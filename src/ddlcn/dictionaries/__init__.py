"""Descriptors -> atoms: one dictionary, the class-wise layer 1, the deeper layers, and first order."""

from ddlcn.dictionaries.first_order import learn_first_order
from ddlcn.dictionaries.layers import learn_deep_layers, learn_layer1, resolve_atoms_per_class, resolve_deep_atoms
from ddlcn.dictionaries.learn import DictionaryResult, learn_dictionary
from ddlcn.dictionaries.residual import learn_residual_layers

__all__ = [
    "DictionaryResult",
    "learn_deep_layers",
    "learn_dictionary",
    "learn_first_order",
    "learn_layer1",
    "learn_residual_layers",
    "resolve_atoms_per_class",
    "resolve_deep_atoms",
]

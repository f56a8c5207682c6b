"""Descriptors -> atoms: one dictionary, the class-wise layer 1, the deeper layers, and what tangents need."""

from ddlcn.dictionaries.layers import learn_deep_layers, learn_layer1, resolve_atoms_per_class, resolve_deep_atoms
from ddlcn.dictionaries.learn import DictionaryResult, learn_dictionary
from ddlcn.dictionaries.residual import learn_residual_layers
from ddlcn.dictionaries.tangents import learn_tangents

__all__ = [
    "DictionaryResult",
    "learn_deep_layers",
    "learn_dictionary",
    "learn_layer1",
    "learn_residual_layers",
    "learn_tangents",
    "resolve_atoms_per_class",
    "resolve_deep_atoms",
]

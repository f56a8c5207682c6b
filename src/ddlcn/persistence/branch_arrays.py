"""What a model file holds of the descriptors and of what was learned on them; and whether the backbone is the same.

A model on a backbone's map does not hold the backbone: it holds its name and hash, and refuses another.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Branch
from ddlcn.coding.first_order import FirstOrderModel
from ddlcn.configuration import EncoderConfig, split_features
from ddlcn.descriptors import ConvMap, DenseColour, DenseSIFT
from ddlcn.descriptors.pretrained.backbones import PACKAGED, hash_network, open_network
from ddlcn.descriptors.pretrained.onnx_file import NetworkError

Array = NDArray[Any]

# What can be made from its parameters alone: no other class is named in a file.
KINDS: dict[str, Any] = {"DenseSIFT": DenseSIFT, "DenseColour": DenseColour, "ConvMap": ConvMap}


def pack_features(features: Any) -> Any:
    """The `features` parameter as JSON can hold it.

    Raises
    ------
    ValueError
        If it is an object of a kind that is not known.
    """
    if isinstance(features, list):
        pairs = split_features(features)
        return {"several": [{"features": pack_features(kind), "parameters": own} for kind, own in pairs]}
    if isinstance(features, str):
        return features
    kind = type(features).__name__
    if KINDS.get(kind) is type(features) and isinstance(getattr(features, "network", ""), str | Path):
        parameters = features.get_params()
        if "network" in parameters:
            parameters["network"] = str(parameters["network"])
        return {kind: parameters}
    raise ValueError(
        f"a model with features={features!r} cannot be saved to a file, since loading must not execute foreign code: "
        f"use pickle or joblib for it"
    )


def unpack_features(packed: Any) -> Any:
    """The inverse of `pack_features`."""
    if isinstance(packed, str):
        return packed
    ((kind, content),) = packed.items()
    if kind == "several":
        pairs = [(unpack_features(each["features"]), restore_tuples(each["parameters"])) for each in content]
        return [(features, own) if own else features for features, own in pairs]
    return KINDS[kind](**restore_tuples(content))


def restore_tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples: lists become tuples again."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


def pack_branches(branches: list[Branch], classes: Array) -> tuple[dict[str, Array], list[dict[str, str]]]:
    """All arrays of the branches by name, and for each which backbone it needs (an empty dict: none)."""
    arrays: dict[str, Array] = {}
    backbones = []
    layers = [atoms for branch in branches for atoms in branch.dictionaries]
    arrays |= {f"dictionary{l}": atoms for l, atoms in enumerate(layers, 1)}
    atom_labels = np.concatenate([branch.atom_labels for branch in branches])
    arrays["atom_classes"] = np.searchsorted(classes, atom_labels).astype(np.int32)
    for b, branch in enumerate(branches):
        if branch.first_order is not None:
            learned = vars(branch.first_order)
            arrays |= {_key("first_order", b, name): np.asarray(part) for name, part in learned.items()}
        backbone = {}
        if isinstance(branch.descriptors, ConvMap):
            opened = open_network(branch.descriptors.network, branch.descriptors.layer)
            backbone = {"name": Path(opened.name).name, "sha256": opened.sha256}
            maps = branch.descriptors
            arrays |= {_key("map", b, "mean"): maps.mean_, _key("map", b, "basis"): maps.basis_}
            arrays[_key("map", b, "n_responses")] = np.array(maps.n_responses_)
            arrays[_key("map", b, "global_weight")] = np.array(branch.global_weight)
        backbones.append(backbone)
    return arrays, backbones


def unpack_branches(
    arrays: dict[str, Array], config: EncoderConfig, backbones: list[dict[str, str]], classes: Array, folder: Path
) -> list[Branch]:
    """The inverse of `pack_branches`.

    Parameters
    ----------
    config : EncoderConfig
        Of the parameters in the file.
    folder : Path
        Of the model file: a backbone that is not where it was is looked for there too.

    Raises
    ------
    NetworkError
        If the backbone at hand is not the one that the model was trained with.
    """
    branches, n_layers, n_atoms = [], 0, 0
    for b, own in enumerate(config.branches):
        dictionaries = [arrays[f"dictionary{n_layers + l}"] for l in range(1, own.n_layers + 1)]
        size = 0 if own.shared_atoms else len(dictionaries[0])
        atom_classes = arrays["atom_classes"][n_atoms : n_atoms + size]
        n_layers, n_atoms = n_layers + own.n_layers, n_atoms + size
        first_order = None
        if _key("first_order", b, "atoms") in arrays:
            names = [f.name for f in fields(FirstOrderModel)]
            parts: dict[str, Any] = {name: arrays[_key("first_order", b, name)] for name in names}
            first_order = FirstOrderModel(**{**parts, "floor": parts["floor"].item()})
        global_weight, descriptors = 0.0, own.descriptors
        if isinstance(descriptors, ConvMap):
            global_weight = arrays[_key("map", b, "global_weight")].item()
            _find_backbone(descriptors, backbones[b], folder)
            descriptors.mean_, descriptors.basis_ = arrays[_key("map", b, "mean")], arrays[_key("map", b, "basis")]
            descriptors.n_responses_ = arrays[_key("map", b, "n_responses")].item()
        branches.append(Branch(own, descriptors, dictionaries, first_order, classes[atom_classes], global_weight))
    return branches


def _find_backbone(descriptors: ConvMap, backbone: dict[str, str], folder: Path) -> None:
    """Point the descriptors to the backbone that is meant, or refuse."""
    path = descriptors.network
    if str(path) != PACKAGED and not Path(path).is_file():
        path = folder / backbone["name"]
        if not path.is_file():
            raise NetworkError(
                f"this model needs the backbone {backbone['name']!r} (sha256 {backbone['sha256'][:16]}...), which is "
                f"neither at {str(descriptors.network)!r} nor beside the model: put it there"
            )
        descriptors.network = path
    found = hash_network(path)
    if found != backbone["sha256"]:
        raise NetworkError(
            f"this model was trained with another backbone {backbone['name']!r}: sha256 {backbone['sha256'][:16]}..., "
            f"and here is {found[:16]}...: use the same, or train again"
        )


def _key(part: str, b: int, name: str) -> str:
    """The name of an array of branch b; the first has no number, as when there was only one."""
    return f"{part}{b if b else ''}.{name}"

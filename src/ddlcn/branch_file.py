"""What a model file holds of the descriptors and of what was learned on them; and whether the network is the same.

A model on a network's map does not hold the network: it holds its name and hash, and refuses another.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.branches import Branch
from ddlcn.coding.tangents import TangentModel
from ddlcn.features import ConvMap, DenseSIFT, resolve_all_features

Array = NDArray[Any]

# What can be made from its parameters alone: no other class is named in a file.
KINDS: dict[str, Any] = {"DenseSIFT": DenseSIFT, "ConvMap": ConvMap}


def pack_features(features: Any) -> Any:
    """The `features` parameter as JSON can hold it.

    Raises
    ------
    ValueError
        If it is an object of a kind that is not known.
    """
    if isinstance(features, list | tuple):
        return {"several": [pack_features(each) for each in features]}
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
        return [unpack_features(each) for each in content]
    return KINDS[kind](**{n: tuple(v) if isinstance(v, list) else v for n, v in content.items()})


def pack_branches(branches: list[Branch], classes: Array) -> tuple[dict[str, Array], list[dict[str, str]]]:
    """All arrays of the branches by name, and for each which network it needs (an empty dict: none)."""
    arrays: dict[str, Array] = {}
    networks = []
    layers = [atoms for branch in branches for atoms in branch.dictionaries]
    arrays |= {f"dictionary{l}": atoms for l, atoms in enumerate(layers, 1)}
    arrays["atom_classes"] = np.searchsorted(classes, np.concatenate([b.atom_labels for b in branches])).astype(
        np.int32
    )
    for b, branch in enumerate(branches):
        if branch.tangents is not None:
            arrays |= {_key("tangents", b, name): np.asarray(part) for name, part in vars(branch.tangents).items()}
        network = {}
        if isinstance(branch.features, ConvMap):
            from ddlcn.features.pretrained.networks import open_network

            opened = open_network(branch.features.network, branch.features.layer)
            network = {"name": Path(opened.name).name, "sha256": opened.sha256}
            arrays |= {_key("map", b, "mean"): branch.features.mean_, _key("map", b, "basis"): branch.features.basis_}
            arrays[_key("map", b, "n_responses")] = np.array(branch.features.n_responses_)
            arrays[_key("map", b, "whole_share")] = np.array(branch.whole_share)
        networks.append(network)
    return arrays, networks


def unpack_branches(
    arrays: dict[str, Array],
    features: Any,
    n_layers: list[int],
    networks: list[dict[str, str]],
    classes: Array,
    folder: Path,
) -> list[Branch]:
    """The inverse of `pack_branches`.

    Parameters
    ----------
    n_layers : list of int
        Of each branch.
    folder : Path
        Of the model file: a network that is not where it was is looked for there too.

    Raises
    ------
    NetworkError
        If the network at hand is not the one that the model was trained with.
    """
    kinds, branches, start = resolve_all_features(features), [], 0
    atom_classes = arrays.get("atom_classes")
    for b, kind in enumerate(kinds):
        first = sum(n_layers[:b])
        dictionaries = [arrays[f"dictionary{first + l}"] for l in range(1, n_layers[b] + 1)]
        n_atoms = len(dictionaries[0])
        of_atoms = np.repeat(np.arange(len(classes)), n_atoms // len(classes))  # of models that do not say it
        if atom_classes is not None:
            of_atoms = atom_classes[start : start + n_atoms]
        start += n_atoms
        tangents = None
        if _key("tangents", b, "atoms") in arrays:
            parts: dict[str, Any] = {f.name: arrays[_key("tangents", b, f.name)] for f in fields(TangentModel)}
            tangents = TangentModel(**{**parts, "floor": parts["floor"].item()})
        share = Branch.whole_share
        if isinstance(kind, ConvMap):
            share = arrays[_key("map", b, "whole_share")].item()
            _find_network(kind, networks[b], folder)
            kind.mean_, kind.basis_ = arrays[_key("map", b, "mean")], arrays[_key("map", b, "basis")]
            kind.n_responses_ = arrays[_key("map", b, "n_responses")].item()
        branches.append(Branch(kind, dictionaries, tangents, classes[of_atoms], share))
    return branches


def _find_network(features: ConvMap, network: dict[str, str], folder: Path) -> None:
    """Point `features` to the network that is meant, or refuse."""
    from ddlcn.features.pretrained.networks import PACKAGED, hash_network
    from ddlcn.features.pretrained.onnx_file import NetworkError

    path = features.network
    if str(path) != PACKAGED and not Path(path).is_file():
        path = folder / network["name"]
        if not path.is_file():
            raise NetworkError(
                f"this model needs the network {network['name']!r} (sha256 {network['sha256'][:16]}...), which is "
                f"neither at {str(features.network)!r} nor beside the model: put it there"
            )
        features.network = path
    found = hash_network(path)
    if found != network["sha256"]:
        raise NetworkError(
            f"this model was trained with another network {network['name']!r}: sha256 {network['sha256'][:16]}..., and "
            f"here is {found[:16]}...: use the same, or train again"
        )


def _key(part: str, b: int, name: str) -> str:
    """The name of an array of branch b; the first has no number, as when there was only one."""
    return f"{part}{b if b else ''}.{name}"

"""Named settings of the classifier, chosen on folds of training images (docs/depth.md has the figures)."""

from __future__ import annotations

from typing import Any

from ddlcn._validation import check_choice, check_count
from ddlcn.branches import PER_FEATURES
from ddlcn.features import ConvMap, DenseSIFT

NAMES = ("paper", "fast", "accurate")

# Photos are brought to at most 300 pixels; small pictures are enlarged, so that a few hundred patches fit on them.
_SIDES = {"max_side": 300, "min_side": 96}
# About 100 atoms, whose own codes say little: only what the residual layer makes of them is kept.
_MICRO = {
    "n_layers": 2, "depth": "residual", "atoms_per_class": "auto", "layer_weights": (0.0, 1.0),
    "n_neighbors": 5, "beta": 0.05,
}  # fmt: skip


# On a network's map, chosen on folds of Caltech 101's training images (docs/pretrained.md): more atoms, neighbours 5 to
# 30, beta 0.01 to 0.2 and C 3 to 100 lie within half a point.
_ON_MAPS = {"n_layers": 1, "atoms_per_class": 10, "n_neighbors": 15, "beta": 0.05, "C": 10.0}


def get_preset(name: str, n_layers: int | None = None, features: Any = None) -> dict[str, Any]:
    """Parameters of `DDLCNClassifier` under a name.

    Parameters
    ----------
    name : str
    features : str, object or list, optional
        Other descriptors than the preset's, as the classifier takes them. On a network's map "fast" and "accurate" are
        one: 10 atoms per class, one layer. "sift" means the preset's own, in a list too; other SIFT, or descriptors of
        your own, go with the preset's parameters.
    n_layers : int, optional
        Another number of layers than the preset's: further residual layers are as large as its last, and kept; a
        network of one layer keeps that one.
    """
    check_choice("preset", name, NAMES)
    parameters = _get_parameters(name)
    if features is not None:
        parameters = _describe_otherwise(parameters, features, {} if name == "paper" else _ON_MAPS)
    if n_layers is None:
        return parameters
    check_count("n_layers", n_layers)
    parameters["n_layers"] = n_layers
    if parameters.get("depth") == "residual":
        parameters["deep_atoms"] = parameters["deep_atoms"] * (n_layers - 1)
        parameters["layer_weights"] = (0.0, *(1.0,) * (n_layers - 1)) if n_layers > 1 else None
        if n_layers == 1:
            del parameters["depth"], parameters["deep_atoms"]
    return parameters


def _describe_otherwise(parameters: dict[str, Any], features: Any, maps: dict[str, Any]) -> dict[str, Any]:
    """The same preset on other descriptors, networks' maps with their own parameters."""
    several = isinstance(features, list | tuple)
    own = parameters.get("features", "sift")
    wanted = [
        own if isinstance(each, str) and each == "sift" else each for each in (features if several else [features])
    ]
    on_map = [isinstance(each, ConvMap) or (isinstance(each, str) and each != "sift") for each in wanted]
    if not any(on_map):
        return {**parameters, "features": wanted if several else wanted[0]}
    if not several:
        return {**maps, "features": wanted[0]}
    alone = {parameter: value for parameter, value in parameters.items() if parameter in PER_FEATURES}
    changes = [{} if is_map else alone for is_map in on_map]
    return {**maps, "features": wanted, "per_features": changes if any(changes) else None}


def _get_parameters(name: str) -> dict[str, Any]:
    if name == "paper":
        return {}
    if name == "fast":
        sift = DenseSIFT(patch_size=24, step=6, **_SIDES)
        return {**_MICRO, "deep_atoms": (64,), "pool_power": 0.5, "C": 3.0, "features": sift}
    sift = DenseSIFT(patch_size=(16, 24, 32), step=6, **_SIDES)
    return {**_MICRO, "deep_atoms": (128,), "tangents": 128, "C": 10.0, "features": sift}

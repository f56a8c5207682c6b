"""Named settings of the estimators, chosen on folds of training images (docs/depth.md, docs/few_images.md).

paper       the published settings, those of the constructor
fast        a micro-dictionary of about 100 atoms and one residual layer
accurate    three patch sizes, and first order beside the residual layer; several times slower
photo       photographs: their grey values, as they are and with even contrast, and a little colour, side by side;
            up to five patch sizes, dictionaries that all classes share, and first order
colour      the same, for pictures that differ by colour: it counts a third
turned      the same, for pictures without a right way up, from above or through a microscope: colour counts a fifth,
            and the SVM learns from every training image in all its turns
aligned     faces and the like, where every part is at its place in every picture: small patches without their light, a
            dictionary that all classes share, a fine grid
drawn       digits, letters, drawings: ink centred and scaled, four patch sizes, a shared dictionary, virtual copies of
            the training images
backbone    photographs of things: the map of a pretrained backbone; needs `pip install 'ddlcn[cnn]'`
auto        photo, colour, turned, aligned, drawn or backbone: what suits the training images
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddlcn.configuration import BRANCH_PARAMETERS, override_branches, split_features
from ddlcn.descriptors import ConvMap, DenseColour, DenseSIFT
from ddlcn.descriptors.pretrained import has_networks
from ddlcn.images.copies import TURNED
from ddlcn.utils.validation import check_choice, check_count

NAMES = ("auto", "paper", "fast", "accurate", "photo", "colour", "turned", "aligned", "drawn", "backbone")
# What "auto" chooses among; the last where its packages are installed.
RECIPES = ("photo", "colour", "turned", "aligned", "drawn", "backbone")
# The classifier's parameters that a preset may set.
PARAMETERS = (*BRANCH_PARAMETERS, "features", "copies", "C")

# Photos are reduced to at most 300 pixels; small pictures are enlarged, so that a few hundred patches fit on them.
_SIDES: dict[str, Any] = {"max_side": 300, "min_side": 96}
# About 100 atoms, whose own codes say little: only what the residual layer makes of them is kept.
_MICRO = {
    "n_layers": 2, "depth": "residual", "atoms_per_class": "auto", "layer_weights": (0.0, 1.0),
    "n_neighbors": 5, "beta": 0.05,
}  # fmt: skip
# Photographs: chosen on training images of Caltech 101, learned from 1 to 20 of each class, tested on 10 others of each
# (docs/few_images.md). Atoms class by class know too little where a class has few images. Two views of a picture with
# 512 atoms each recognise more than one with 1,024. How much colour counts beside them, by preset.
_PHOTO = {"n_layers": 1, "shared_atoms": 512, "n_neighbors": 5, "beta": 0.05, "first_order": 128, "C": 10.0}
_COLOUR = {"photo": 0.1, "colour": 1 / 3, "turned": 0.2}
# Faces and the like, every part at its place: small patches without their light, and a fine grid in place of a pyramid.
# Chosen on folds of the training faces of Extended Yale B and AR (docs/few_images.md).
_ALIGNED = {
    "n_layers": 1, "shared_atoms": 256, "n_neighbors": 5, "beta": 0.05, "pyramid": (16,), "pool_power": 0.5, "C": 10.0,
}  # fmt: skip
# Digits and letters: chosen on Omniglot's background alphabets and on training images of MNIST (docs/few_images.md).
_DRAWN = {
    "n_layers": 1, "shared_atoms": 200, "n_neighbors": 5, "beta": 0.05, "pool_power": 0.5, "copies": 60, "C": 10.0,
}  # fmt: skip
# On a backbone's map, chosen on folds of Caltech 101's training images (docs/pretrained.md): more atoms, neighbours 5
# to 30, beta 0.01 to 0.2 and C 3 to 100 lie within half a point.
_ON_MAPS = {"n_layers": 1, "atoms_per_class": 10, "n_neighbors": 15, "beta": 0.05, "C": 10.0}


def _make_views(colour: float, step: int = 6) -> list[Any]:
    """Grey values as they are and with even contrast, and colour, which counts so much, side by side."""
    # At 200 pixels, patches of up to 64 see whole parts of things.
    sides: dict[str, Any] = {"max_side": 200, "min_side": 96}
    views: list[Any] = [
        (DenseSIFT(patch_size=(16, 24, 32, 48, 64), step=step, contrast=contrast, **sides), (1 - colour) / 2)
        for contrast in ("none", "local")
    ]
    views.append((DenseColour(patch_size=(16, 32, 64), step=8, **sides), colour))
    return [(view, {"weight": weight}) for view, weight in views]


# How recipes are tried on folds: smaller, so that trying them takes a fraction of the final fit.
TRIALS: dict[str, dict[str, Any]] = {
    **{
        name: {"features": _make_views(colour, step=9), "shared_atoms": 128, "first_order": 32}
        for name, colour in _COLOUR.items()
    },
    "drawn": {"copies": 10},
}


def get_preset(
    name: str, n_layers: int | None = None, features: Any = None, changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Parameters of `DDLCNClassifier` under a name.

    Parameters
    ----------
    name : str
    n_layers : int, optional
        Another number of layers than the preset's: further residual layers are as large as its last, and kept; a
        network of one layer keeps that one.
    features : str, object or list, optional
        Other descriptors than the preset's, as the classifier takes them. On a backbone's map "fast" and "accurate" are
        one: 10 atoms per class, one layer. "sift" means the preset's own, in a list too; other SIFT, or descriptors of
        your own, go with the preset's parameters.
    changes : mapping, optional
        Any other parameters, to replace the preset's; for every kind of descriptor.
    """
    check_choice("preset", name, NAMES)
    changes = dict(changes or {})
    if name == "auto":
        return {"recipes": list_recipes(), **_check_changes(changes, n_layers, features)}
    parameters = _get_parameters(name)
    if n_layers is not None:
        parameters = _change_depth(parameters, check_count("n_layers", n_layers))
    if features is not None:
        on_maps = {} if name == "paper" else dict(_ON_MAPS)
        if n_layers is not None:
            on_maps["n_layers"] = n_layers
        parameters = _describe_otherwise(parameters, features, on_maps)
    if "features" in parameters:
        parameters["features"] = override_branches(parameters["features"], tuple(changes))
    return {**parameters, **changes}


def list_recipes(backbone: bool | None = None) -> tuple[str, ...]:
    """What "auto" chooses among, with or without the pretrained backbone; None: with it where it is installed."""
    with_backbone = has_networks() if backbone is None else backbone
    return RECIPES if with_backbone else tuple(name for name in RECIPES if name != "backbone")


def _check_changes(changes: dict[str, Any], n_layers: int | None, features: Any) -> dict[str, Any]:
    """Changes of "auto", less those that a recipe has of its own."""
    given = {**changes, **{name: value for name, value in (("n_layers", n_layers), ("features", features)) if value}}
    for name in given:
        if name in PARAMETERS:
            raise ValueError(f'preset "auto" chooses {name} itself: leave it out, or name another preset')
    return given


def _change_depth(parameters: dict[str, Any], n_layers: int) -> dict[str, Any]:
    """The same preset with another number of layers."""
    parameters = {**parameters, "n_layers": n_layers}
    if parameters.get("depth") == "residual":
        parameters["deep_atoms"] = parameters["deep_atoms"] * (n_layers - 1)
        parameters["layer_weights"] = (0.0, *(1.0,) * (n_layers - 1)) if n_layers > 1 else None
        if n_layers == 1:
            del parameters["depth"], parameters["deep_atoms"]
    return parameters


def _describe_otherwise(parameters: dict[str, Any], features: Any, on_maps: dict[str, Any]) -> dict[str, Any]:
    """The same preset on other descriptors, backbones' maps with their own parameters."""
    own = parameters.get("features", "sift")
    alone = {name: value for name, value in parameters.items() if name in BRANCH_PARAMETERS}
    if isinstance(features, str) and features == "sift":
        return parameters
    kinds = []
    for kind, given in split_features(features):
        is_own = isinstance(kind, str) and kind == "sift"
        kinds += [(each, _weigh_not(more) | given) for each, more in split_features(own)] if is_own else [(kind, given)]
    any_map = any(_is_map(kind) for kind, _ in kinds)
    if not isinstance(features, list):
        return {**(on_maps if any_map else parameters), "features": kinds[0][0]}
    if any_map:
        kinds = [(kind, given if _is_map(kind) else {**alone, **given}) for kind, given in kinds]
        parameters = on_maps
    return {**parameters, "features": [(kind, given) if given else kind for kind, given in kinds]}


def _weigh_not(own: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a kind of descriptor without its weight: beside others it is chosen."""
    return {name: value for name, value in own.items() if name != "weight"}


def _is_map(kind: Any) -> bool:
    return isinstance(kind, ConvMap) or (isinstance(kind, str) and kind != "sift")


def _get_parameters(name: str) -> dict[str, Any]:
    if name == "paper":
        return {}
    if name == "backbone":
        return {**_ON_MAPS, "features": "cnn"}
    if name == "drawn":
        sift = DenseSIFT(patch_size=(14, 20, 28, 40), step=4, max_side=112, min_side=80, centre_ink=True)
        return {**_DRAWN, "features": sift}
    if name in _COLOUR:
        return {**_PHOTO, "features": _make_views(_COLOUR[name]), **({"copies": TURNED} if name == "turned" else {})}
    if name == "aligned":
        return {**_ALIGNED, "features": DenseSIFT(patch_size=8, step=2, max_side=112, min_side=80, contrast="local")}
    if name == "fast":
        sift = DenseSIFT(patch_size=24, step=6, **_SIDES)
        return {**_MICRO, "deep_atoms": (64,), "pool_power": 0.5, "C": 3.0, "features": sift}
    sift = DenseSIFT(patch_size=(16, 24, 32), step=6, **_SIDES)
    return {**_MICRO, "deep_atoms": (128,), "first_order": 128, "C": 10.0, "features": sift}

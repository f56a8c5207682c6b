"""What an encoder is learned with, checked and frozen: one `BranchConfig` for every kind of descriptor.

The constructor's parameters come in, `EncoderConfig` leaves, and everything after it reads that. A mistake in any
parameter is found here, before an image is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ddlcn.coding.residual import check_layer_weights
from ddlcn.descriptors import resolve_descriptors
from ddlcn.dictionaries import resolve_atoms_per_class, resolve_deep_atoms
from ddlcn.pooling import check_pyramid
from ddlcn.utils.validation import check_choice, check_count, check_number, check_per_layer

# What nobody knows before the training images are there: as many atoms as any setting may ask for.
_ANY_NUMBER = 2**31


@dataclass(frozen=True)
class BranchConfig:
    """One kind of descriptor: how its dictionaries, codes and pooling are made.

    Attributes have the names and meanings of `DDLCNEncoder`'s parameters, except
    descriptors : object with transform(images) -> list of Descriptors
        A copy of the user's, not fitted yet.
    n_neighbors, beta : tuples
        One value per layer.
    make_block : function of (dictionaries, config), optional
        Makes the block of the codes, in place of the exact coder and its layers; experiments compare those.
    """

    descriptors: Any
    n_layers: int
    atoms_per_class: int | str
    shared_atoms: int
    dictionary_images: int | None
    l1_radius: float
    deep_atoms: tuple[int, ...] | str
    depth: str
    layer_weights: tuple[float, ...] | None
    first_order: int
    n_neighbors: tuple[int | None, ...]
    beta: tuple[float, ...]
    pyramid: tuple[int, ...]
    pool_power: float
    make_block: Callable[..., Any] | None = None


# Parameters of the estimators that may differ from one kind of descriptor to the next.
BRANCH_PARAMETERS = tuple(
    field.name for field in fields(BranchConfig) if field.name not in ("descriptors", "make_block")
)


@dataclass(frozen=True)
class EncoderConfig:
    """All branches, the C of the SVM that chooses on folds how much each of several counts, or that as it is given."""

    branches: tuple[BranchConfig, ...]
    C: float = 1.0
    weights: tuple[float, ...] | None = None


def configure(features: Any, parameters: Mapping[str, Any], C: float = 1.0) -> EncoderConfig:
    """Check all parameters of an encoder.

    Parameters
    ----------
    features : str, object, or list of such or of pairs (features, dict)
        As `DDLCNEncoder` takes it.
    parameters : mapping
        Of BRANCH_PARAMETERS; a pair's own come first. A pair may also have a `weight`.
    C : float
    """
    branches, weights = [], []
    for kind, own in split_features(features):
        weights.append(own.pop("weight", None))
        unknown = sorted(set(own) - set(BRANCH_PARAMETERS))
        if unknown:
            raise ValueError(
                f"features: the parameters of {kind!r} have {unknown[0]!r}: only {', '.join(BRANCH_PARAMETERS)} can "
                f"differ from one kind of descriptor to the next"
            )
        branches.append(_configure_branch(kind, {**parameters, **own}))
    return EncoderConfig(tuple(branches), check_number("C", C, above=True), _check_weights(weights))


def _check_weights(weights: Sequence[float | None]) -> tuple[float, ...] | None:
    """How much each kind of descriptor counts, in all one; None where that is to be chosen."""
    given = [check_number("weight", weight, above=True) for weight in weights if weight is not None]
    if not given:
        return None
    if len(given) < len(weights):
        raise ValueError("features: either every kind of descriptor has a weight, or none: then they are chosen")
    return tuple(weight / sum(given) for weight in given)


def split_features(features: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Every kind of descriptor, and the parameters that are its own."""
    if not isinstance(features, list):
        return [(features, {})]
    if not features:
        raise ValueError("features is empty: name at least one, such as ['sift', 'cnn']")
    return [(each[0], dict(each[1])) if _is_pair(each) else (each, {}) for each in features]


def override_branches(features: Any, names: Sequence[str]) -> Any:
    """`features` without parameters of those names: the estimator's own then count for every kind of descriptor."""
    if not isinstance(features, list):
        return features
    left = [({k: v for k, v in own.items() if k not in names}, kind) for kind, own in split_features(features)]
    return [(kind, own) if own else kind for own, kind in left]


def _is_pair(each: Any) -> bool:
    return isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], dict)


def _configure_branch(kind: Any, given: Mapping[str, Any]) -> BranchConfig:
    n_layers = check_count("n_layers", given["n_layers"])
    depth = check_choice("depth", given["depth"], ("augment", "residual"))
    resolve_atoms_per_class(given["atoms_per_class"], 2)
    resolve_deep_atoms(given["deep_atoms"], n_layers, _ANY_NUMBER, depth)
    p, deep_atoms = given["dictionary_images"], given["deep_atoms"]
    neighbors = check_per_layer("n_neighbors", given["n_neighbors"], n_layers)
    return BranchConfig(
        descriptors=resolve_descriptors(kind),
        n_layers=n_layers,
        atoms_per_class=given["atoms_per_class"],
        shared_atoms=check_count("shared_atoms", given["shared_atoms"], 0),
        dictionary_images=None if p is None else check_count("dictionary_images", p),
        l1_radius=check_number("l1_radius", given["l1_radius"], above=True),
        deep_atoms=deep_atoms if isinstance(deep_atoms, str) else tuple(deep_atoms),
        depth=depth,
        layer_weights=check_layer_weights(given["layer_weights"], depth, n_layers),
        first_order=check_count("first_order", given["first_order"], 0),
        n_neighbors=tuple(None if k is None else check_count("n_neighbors", k) for k in neighbors),
        beta=tuple(check_number("beta", beta) for beta in check_per_layer("beta", given["beta"], n_layers)),
        pyramid=check_pyramid(given["pyramid"]),
        pool_power=check_number("pool_power", given["pool_power"], above=True),
    )

"""Branches: one for every kind of descriptor, with all that was learned on it; and several of them side by side.

    image -> sift -> dictionaries, codes, pooling --+
    image -> cnn  -> dictionaries, codes, pooling --+-- weighted --> SVM

How much each counts is chosen on folds of the training images: `ddlcn.shares`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.coding.tangents import TangentModel
from ddlcn.dictionaries import (
    learn_deep_layers,
    learn_layer1,
    learn_residual_layers,
    learn_tangents,
    resolve_atoms_per_class,
    resolve_deep_atoms,
)
from ddlcn.features import Descriptors, describe_by_class, sample_descriptors
from ddlcn.network import TOL, Network
from ddlcn.stream import FeatureStream, NamedImage

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

Array = NDArray[Any]

# Parameters of the classifier that may differ from one kind of descriptor to the next.
PER_FEATURES = (
    "n_layers", "atoms_per_class", "dictionary_images", "l1_radius", "deep_atoms", "depth", "layer_weights", "tangents",
    "n_neighbors", "beta", "pyramid", "pool_power",
)  # fmt: skip
# How much of the feature describes the whole image, where descriptors do. More where a class has a single image, for
# its atoms know that one only; chosen on folds (docs/pretrained.md).
WHOLE_SHARE, WHOLE_SHARE_OF_ONE = 2 / 3, 4 / 5


@dataclass(eq=False)
class Branch:
    """One kind of descriptor and what was learned on it.

    Attributes
    ----------
    features : object with transform(images) -> list of Descriptors
        Fitted.
    dictionaries : list of ndarrays (atoms, m), one per layer
    tangents : TangentModel or None
    atom_labels : ndarray (atoms of layer 1,)
        The class from whose images each atom was learned.
    whole_share : float
        How much of the feature describes the image as a whole, where the descriptors do.
    """

    features: Any
    dictionaries: list[Array]
    tangents: TangentModel | None
    atom_labels: Array
    whole_share: float = 0.5

    @property
    def n_atoms(self) -> int:
        """Of layer 1, and of the tangents' shared dictionary."""
        return len(self.dictionaries[0]) + (0 if self.tangents is None else len(self.tangents.atoms))


def learn_branch(
    model: DDLCNClassifier,
    settings: dict[str, Any],
    features: Any,
    named: Sequence[NamedImage],
    labels: NDArray[np.intp],
    classes: Array,
    seeds: Sequence[np.random.SeedSequence],
    before: Branch | None = None,
) -> Branch:
    """Fit the descriptors if they need it, and learn all dictionaries on them.

    Parameters
    ----------
    model : DDLCNClassifier
        Whose parameters count.
    settings : dict
        Its checked parameters.
    features : object with transform(images)
    named, labels, classes
        Training images, class indices, and what classes are called.
    seeds : five SeedSequences
        Of dictionary images, layer 1, deeper layers, the descriptors that those see, tangents.
    before : Branch, optional
        Learned from the same images with other coding: its descriptors and its layer 1 are taken over.
    """
    if before is not None:
        features = before.features
    elif hasattr(features, "fit_named"):
        features.fit_named(list(named))
    how = (settings["betas"], settings["n_neighbors"], TOL, model.l1_radius)
    if before is not None:
        layer1 = before.dictionaries[0]
    else:
        by_class = describe_by_class(features, named, labels, model.dictionary_images, seeds[0])
        n_atoms = resolve_atoms_per_class(model.atoms_per_class, len(by_class))
        layer1 = learn_layer1(by_class, n_atoms, model.l1_radius, seeds[1], model.n_jobs, verbose=model.verbose > 0)

    sizes = resolve_deep_atoms(model.deep_atoms, model.n_layers, len(layer1), model.depth)
    sampled = (model.depth == "residual" and model.n_layers > 1) or model.tangents > 0
    sample = sample_descriptors(features, named, seeds[3]) if sampled else np.empty((0, 0))
    if model.depth == "augment":
        deeper = learn_deep_layers(layer1, sizes, model.l1_radius, seeds[2])
    else:
        deeper = learn_residual_layers(layer1, sample, sizes, *how, seeds[2], model.n_jobs) if sizes else []
    tangents = None
    if model.tangents > 0:
        first = (how[0][0], how[1][0], *how[2:])
        tangents = learn_tangents(sample, min(model.tangents, len(sample)), *first, seeds[4], model.n_jobs)
    atom_labels = np.repeat(classes, len(layer1) // len(classes))
    share = WHOLE_SHARE_OF_ONE if np.bincount(labels).min() == 1 else WHOLE_SHARE
    return Branch(features, [layer1, *deeper], tangents, atom_labels, share)


def connect(
    branches: Sequence[Branch], settings: Sequence[dict[str, Any]], shares: Sequence[float]
) -> Network | Together:
    """The forward pass through branches: for each `settings` as `Network` takes them, and its share of the whole."""
    networks = [
        Network(b.dictionaries, features=b.features, tangents=b.tangents, whole_share=b.whole_share, **own)
        for b, own in zip(branches, settings, strict=True)
    ]
    return networks[0] if len(networks) == 1 else Together(networks, shares)


def find_atom(branches: Sequence[Branch], atom: int) -> tuple[Branch, Array]:
    """The branch of an atom that `list_atoms` numbers, and the atom itself (m,)."""
    for branch in branches:
        if atom < branch.n_atoms:
            n_layer1 = len(branch.dictionaries[0])
            if atom < n_layer1:
                return branch, branch.dictionaries[0][atom]
            assert branch.tangents is not None  # or there were no more
            return branch, branch.tangents.atoms[atom - n_layer1]
        atom -= branch.n_atoms
    raise IndexError(f"there is no atom {atom}")


def check_per_features(per_features: Any, n: int) -> list[dict[str, Any]]:
    """The parameters that differ for each of n kinds of descriptors."""
    if per_features is None:
        return [{} for _ in range(n)]
    if not isinstance(per_features, list | tuple) or len(per_features) != n:
        raise ValueError(f"per_features must be a list of {n} dicts, one for each of `features`; got {per_features!r}")
    for changes in per_features:
        unknown = sorted(set(changes) - set(PER_FEATURES))
        if unknown:
            raise ValueError(f"per_features has {unknown[0]!r}: only {', '.join(PER_FEATURES)} can differ")
    return [dict(changes) for changes in per_features]


def share_evenly(n: int) -> tuple[float, ...]:
    """Equal shares of n branches."""
    return (1 / n,) * n


class Together(FeatureStream):
    """Several networks side by side: their features, each scaled by the square root of its share.

    Has what a `Network` has, for those that only describe, code and pool.

    Parameters
    ----------
    networks : sequence of Network
    shares : sequence of float
        Their sum is one: features of length one give one of length one.
    """

    def __init__(self, networks: Sequence[Network], shares: Sequence[float]) -> None:
        self.networks = tuple(networks)
        self._factors = [np.float32(np.sqrt(share)) for share in shares]
        self.n_columns = sum(network.n_columns for network in networks)

    def features_of_batch(self, batch: Sequence[NamedImage]) -> Any:
        """As of any stream of features. A branch that does not count is not asked."""
        blocks = [
            network.features_of_batch(batch) * factor if factor > 0 else _nothing(len(batch), network.n_columns)
            for network, factor in zip(self.networks, self._factors, strict=True)
        ]
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def attribute(self, name: str, image: Any) -> tuple[Descriptors, Any]:
        """As `Network.attribute`: the patches of all branches, placed on the image as the first sees it."""
        found = [network.attribute(name, image) for network in self.networks]
        height, width = found[0][0].image_shape
        xy, sizes = [], []
        for described, _ in found:
            scale = np.array([width / described.image_shape[1], height / described.image_shape[0]], np.float32)
            xy.append((described.xy + 0.5) * scale - 0.5)
            own = np.ones(len(described), np.float32) if described.sizes is None else described.sizes
            sizes.append(own * scale.mean())
        places = Descriptors(
            np.empty((sum(map(len, xy)), 0), np.float32), np.concatenate(xy), (height, width), np.concatenate(sizes)
        )
        parts = [part * factor for (_, part), factor in zip(found, self._factors, strict=True)]
        return places, sparse.csr_array(sparse.block_diag(parts, format="csr"))

    def list_atoms(self) -> NDArray[np.intp]:
        """As `Network.list_atoms`, the atoms of a later branch numbered on after those of the earlier."""
        numbers, start = [], 0
        for network in self.networks:
            own = network.list_atoms()
            numbers.append(np.where(own < 0, own, own + start))
            start += network.n_listed_atoms
        return np.concatenate(numbers)

    def reconstruct(self, named: Iterable[NamedImage], n_jobs: int | None) -> Iterator[list[Array]]:
        """As `Network.reconstruct`: the approximations of the first branch's layers, then of the second's."""
        named = list(named)
        for each in zip(*(network.reconstruct(named, n_jobs) for network in self.networks), strict=True):
            yield [approximation for of_branch in each for approximation in of_branch]


def _nothing(n_images: int, n_columns: int) -> Any:
    return sparse.csr_array((n_images, n_columns), dtype=np.float32)

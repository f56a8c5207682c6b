"""The one function that learns: a configuration, images and labels in, a fitted `Encoding` out.

    descriptors -> layer 1, class by class -> deeper layers -> first order      for every kind of descriptor

`fit`, `expand`, tuning, comparison and every experiment come through here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import TOL, Branch
from ddlcn.coding.first_order import FirstOrderModel
from ddlcn.configuration import BranchConfig
from ddlcn.descriptors import describe_by_class, sample_descriptors
from ddlcn.dictionaries import (
    learn_deep_layers,
    learn_dictionary,
    learn_first_order,
    learn_layer1,
    learn_residual_layers,
    resolve_atoms_per_class,
    resolve_deep_atoms,
)
from ddlcn.images import NamedImage
from ddlcn.utils.validation import seed_sequence

Array = NDArray[Any]
Seed = np.random.SeedSequence

# How much of the feature describes the whole image, where descriptors do. More where a class has a single image, for
# its atoms know that one only; chosen on folds (docs/pretrained.md).
GLOBAL_WEIGHT, GLOBAL_WEIGHT_OF_ONE = 2 / 3, 4 / 5


class TrainingImages(NamedTuple):
    """Images, and what is on them.

    Attributes
    ----------
    items : sequence of n NamedImages
    labels : ndarray (n,)
        Class indices.
    classes : ndarray (n_classes,)
        What the classes are called.
    dictionary : (items, class indices), optional
        Other images that layer 1 is learned from; None: these.
    """

    items: Sequence[NamedImage]
    labels: NDArray[np.intp]
    classes: Array
    dictionary: tuple[Sequence[NamedImage], NDArray[np.intp]] | None = None


class Seeds(NamedTuple):
    """One seed for every random choice. A seed counts what it has spawned: make them anew for every learning."""

    images: Seed
    layer1: Seed
    deeper: Seed
    sample: Seed
    first_order: Seed
    folds: Seed
    copies: Seed
    joint: Seed

    @classmethod
    def spawn(cls, random_state: Any) -> Seeds:
        images, layer1, deeper, folds, sample, first_order, *others = seed_sequence(random_state).spawn(8)
        return cls(images, layer1, deeper, sample, first_order, folds, *others)


def learn_branch(
    config: BranchConfig,
    training: TrainingImages,
    seeds: Seeds,
    n_jobs: int | None = None,
    verbose: bool = False,
    earlier: Branch | None = None,
) -> Branch:
    """Fit the descriptors if they need it, and learn all dictionaries on them.

    Parameters
    ----------
    config : BranchConfig
    training : TrainingImages
    seeds : Seeds
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : bool
        Whether to show progress.
    earlier : Branch, optional
        Learned from the same images with other coding: its descriptors and its layer 1 are taken over.
    """
    items, labels, classes = training.items, training.labels, training.classes
    if earlier is not None:
        descriptors, layer1 = earlier.descriptors, earlier.dictionaries[0]
    else:
        descriptors = config.descriptors
        if hasattr(descriptors, "fit_items"):
            descriptors.fit_items(items, n_jobs)
        layer1 = _learn_layer1(config, descriptors, training, seeds, n_jobs, verbose)

    sizes = resolve_deep_atoms(config.deep_atoms, config.n_layers, len(layer1), config.depth)
    sample = np.empty((0, 0))
    if (config.depth == "residual" and sizes) or config.first_order > 0:
        sample = sample_descriptors(descriptors, items, seeds.sample, n_jobs)
    if config.depth == "augment":
        deeper = learn_deep_layers(layer1, sizes, config.l1_radius, seeds.deeper)
    else:
        deeper = _learn_residual(config, layer1, sample, sizes, seeds, n_jobs) if sizes else []
    first_order = _learn_first_order(config, sample, seeds, n_jobs) if config.first_order > 0 else None
    atom_labels = classes[:0] if config.shared_atoms else np.repeat(classes, len(layer1) // len(classes))
    global_weight = GLOBAL_WEIGHT_OF_ONE if np.bincount(labels).min() == 1 else GLOBAL_WEIGHT
    return Branch(config, descriptors, [layer1, *deeper], first_order, atom_labels, global_weight)


def learn_class_atoms(
    config: BranchConfig,
    descriptors: Any,
    items: Sequence[NamedImage],
    labels: NDArray[np.intp],
    n_atoms: int,
    seeds: Seeds,
    n_jobs: int | None,
    verbose: bool = False,
) -> Array:
    """Layer 1 atoms for the classes of `labels` (n,), class after class: (n_classes * n_atoms, m)."""
    by_class = describe_by_class(descriptors, items, labels, config.dictionary_images, seeds.images)
    return learn_layer1(by_class, n_atoms, config.l1_radius, seeds.layer1, n_jobs, verbose=verbose)


def _learn_layer1(
    config: BranchConfig, descriptors: Any, training: TrainingImages, seeds: Seeds, n_jobs: int | None, verbose: bool
) -> Array:
    """Atoms (D_1, m) of all classes together, or class after class."""
    items, labels = training.dictionary or (training.items, training.labels)
    if config.shared_atoms:
        sample = _drop_flat(sample_descriptors(descriptors, items, seeds.images, n_jobs))
        return learn_dictionary(sample, config.shared_atoms, config.l1_radius, random_state=seeds.layer1).atoms
    n_atoms = resolve_atoms_per_class(config.atoms_per_class, len(training.classes))
    return learn_class_atoms(config, descriptors, items, labels, n_atoms, seeds, n_jobs, verbose)


def _drop_flat(sample: Array) -> Array:
    """Descriptors (n, m) of patches with something on them, where there are any.

    The background of a drawing has no shape to learn, and its codes, of tiny descriptors, take nearly all the time.
    """
    norms = np.linalg.norm(sample, axis=1)
    return np.asarray(sample[norms >= 0.5 * norms.max(initial=0.0)])


def _learn_residual(
    config: BranchConfig, layer1: Array, sample: Array, sizes: Sequence[int], seeds: Seeds, n_jobs: int | None
) -> list[Array]:
    return learn_residual_layers(
        layer1,
        sample,
        sizes,
        betas=config.beta,
        n_neighbors=config.n_neighbors,
        tol=TOL,
        l1_radius=config.l1_radius,
        random_state=seeds.deeper,
        n_jobs=n_jobs,
    )


def _learn_first_order(config: BranchConfig, sample: Array, seeds: Seeds, n_jobs: int | None) -> FirstOrderModel:
    return learn_first_order(
        sample,
        min(config.first_order, len(sample)),
        beta=config.beta[0],
        n_neighbors=config.n_neighbors[0],
        tol=TOL,
        l1_radius=config.l1_radius,
        random_state=seeds.first_order,
        n_jobs=n_jobs,
    )

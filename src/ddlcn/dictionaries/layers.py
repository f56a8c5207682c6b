"""The dictionaries of a network. In: descriptors per class. Out: one array of atoms per layer.

Layer 1 (docs/method.md, "Layer 1 dictionary"): q atoms for each class from its own descriptors, stacked.
Deeper layers ("Deeper layers" there): a dictionary learned, by the same problem, on the atoms of layer l - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.dictionaries.learn import learn, learn_dictionary
from ddlcn.utils.progress import track
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_matrix, check_number, seed_sequence

Array = NDArray[Any]

# Total atoms of layer 1 under "auto": about one per class of Caltech 101 (docs/depth.md).
_AUTO_LAYER1 = 100
# Atoms of layer 2 under "auto": the published code's setting for digits (docs/method.md 2.4).
_AUTO_LAYER2 = 32


def learn_layer1(
    descriptors_by_class: Sequence[Any],
    atoms_per_class: int,
    l1_radius: float = 0.35,
    random_state: Any = None,
    n_jobs: int | None = None,
    *,
    batch_size: int = 512,
    max_iter: int = 500,
    tol: float = 1e-3,
    verbose: bool = False,
) -> Array:
    """Learn the class-wise dictionary of layer 1, classes in parallel.

    Parameters
    ----------
    descriptors_by_class : sequence of array-likes (n_c, m), or of functions that return one
        The descriptors of each class; a class may have fewer of them than atoms. A function is called when its class
        is processed, so that only the classes in progress are in memory.
    atoms_per_class : int
        Atoms per class (q).
    l1_radius, batch_size, max_iter, tol
        As in `learn_dictionary`.
    random_state : None, int, numpy SeedSequence, Generator or RandomState
        Every class gets its own seed, so the result does not depend on `n_jobs`.
    n_jobs : int, optional
        Threads; None or -1 for all cores.
    verbose : bool, default False
        Show progress.

    Returns
    -------
    atoms : ndarray (n_classes * atoms_per_class, m)
        Class after class: rows c * q to (c + 1) * q belong to class c.
    """
    atoms_per_class = check_count("atoms_per_class", atoms_per_class)
    batch_size = check_count("batch_size", batch_size)
    max_iter = check_count("max_iter", max_iter)
    l1_radius = check_number("l1_radius", l1_radius, above=True)
    tol = check_number("tol", tol)
    if len(descriptors_by_class) == 0:
        raise ValueError("descriptors_by_class is empty: pass one array of descriptors for each class")
    seeds = seed_sequence(random_state).spawn(len(descriptors_by_class))

    def learn_class(item: tuple[int, np.random.SeedSequence]) -> Array:
        c, seed = item
        given = descriptors_by_class[c]
        X = check_matrix(f"descriptors_by_class[{c}]", given() if callable(given) else given, "descriptor")
        rng = np.random.default_rng(seed)
        return learn(X, atoms_per_class, l1_radius, batch_size, max_iter, tol, None, rng).atoms

    learned = map_threads(learn_class, enumerate(seeds), n_jobs)
    dictionaries = list(track(learned, len(seeds), "learning dictionaries, by class", verbose))
    for c, atoms in enumerate(dictionaries):
        check_matrix(f"descriptors_by_class[{c}]", atoms, "descriptor", n_columns=dictionaries[0].shape[1])
    return np.concatenate(dictionaries)


def learn_deep_layers(
    layer1_atoms: Any, n_atoms_per_layer: Sequence[int], l1_radius: float = 0.35, random_state: Any = None
) -> list[Array]:
    """Learn the dictionaries of layers 2, 3, ...: each on the atoms of the layer below.

    Parameters
    ----------
    layer1_atoms : array-like (D_1, m)
    n_atoms_per_layer : sequence of int
        D_2, D_3, ...: one number per deeper layer, from `resolve_deep_atoms`; may be empty.
    l1_radius : float, default 0.35
    random_state : None, int, numpy SeedSequence, Generator or RandomState

    Returns
    -------
    layers : list of ndarrays (D_l, m)
        One per deeper layer, without layer 1.
    """
    below = check_matrix("layer1_atoms", layer1_atoms, "atom")
    sizes = [check_count("n_atoms_per_layer", size) for size in n_atoms_per_layer]
    layers: list[Array] = []
    for size, seed in zip(sizes, seed_sequence(random_state).spawn(len(sizes)), strict=True):
        below = learn_dictionary(below, size, l1_radius, random_state=seed).atoms
        layers.append(below)
    return layers


def resolve_atoms_per_class(atoms_per_class: Any, n_classes: int) -> int:
    """Resolve the atoms per class of layer 1: a number, or "auto" for about 100 in total."""
    if isinstance(atoms_per_class, str) and atoms_per_class == "auto":
        return -(-_AUTO_LAYER1 // n_classes)
    if isinstance(atoms_per_class, str):
        raise ValueError(f"atoms_per_class must be 'auto' or a whole number of at least 1; got {atoms_per_class!r}")
    return check_count("atoms_per_class", atoms_per_class)


def resolve_deep_atoms(deep_atoms: Any, n_layers: int, n_layer1_atoms: int, depth: str = "augment") -> tuple[int, ...]:
    """Resolve the number of atoms of each deeper layer.

    "auto" gives layer 2 the 32 atoms of the published code's digits setting, or as many as layer 1 has if
    that is fewer. Augmented, every further layer has half as many as the one below it, at least 1: a layer summarises
    the one below, so it should be smaller, and halving works for any number of layers. (There the exact numbers matter
    little: depth only re-weights the atoms of layer 1, docs/method.md 2.1.) Residual, every further layer has as many
    as layer 2: residuals do not get simpler.

    Parameters
    ----------
    deep_atoms : "auto" or sequence of int
        A sequence has one number per deeper layer; augmented, none exceeds the number of atoms of the layer below,
        on which it is learned.
    n_layers : int
        Number of layers, layer 1 included.
    n_layer1_atoms : int
        Atoms of layer 1.
    depth : "augment" or "residual"

    Returns
    -------
    sizes : tuple of n_layers - 1 ints
        D_2, D_3, ...
    """
    n_layers = check_count("n_layers", n_layers)
    below = check_count("n_layer1_atoms", n_layer1_atoms)
    if isinstance(deep_atoms, str) and deep_atoms == "auto":
        layer2 = min(_AUTO_LAYER2, below)
        if depth == "residual":
            return (layer2,) * (n_layers - 1)
        return tuple(max(1, layer2 >> halvings) for halvings in range(n_layers - 1))
    if isinstance(deep_atoms, str) or not isinstance(deep_atoms, Iterable):
        raise ValueError(
            f"deep_atoms must be 'auto' or one number per deeper layer, as in (32, 16); got {deep_atoms!r}"
        )
    given = list(deep_atoms)
    if len(given) != n_layers - 1:
        raise ValueError(
            f"deep_atoms has {len(given)} numbers where n_layers={n_layers} needs {n_layers - 1}: "
            f"pass one per layer above the first, or 'auto'"
        )
    sizes = []
    for layer, value in enumerate(given, start=2):
        size = check_count(f"deep_atoms for layer {layer}", value)
        if depth == "augment" and size > below:
            raise ValueError(
                f"deep_atoms asks for {size} atoms in layer {layer}, but the layer below has only {below}: "
                f"pass at most {below}, or 'auto'"
            )
        sizes.append(size)
        below = size
    return tuple(sizes)

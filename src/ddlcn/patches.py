"""What an atom looks like: the training patches nearest to it, as small grey pictures.

They show pieces of training images, perhaps of people: a model keeps them only when asked to (`keep_patches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn._progress import track
from ddlcn._threads import map_threads
from ddlcn.coding.tangents import to_length_one
from ddlcn.features import Descriptors

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

Array = NDArray[Any]

# Side of the kept pictures in pixels, and how many an atom has at most, each from another image.
SIDE = 32
PER_ATOM = 3


@dataclass(frozen=True, eq=False)
class TrainingPatches:
    """Training patches, by the atoms that they are nearest to.

    Attributes
    ----------
    pixels : ndarray (n, SIDE, SIDE), uint8
    atoms : ndarray (n,)
        Of layer 1 or, numbered on, of the tangents' shared dictionary; ascending, the nearest patch first.
    labels : ndarray (n,)
        Of the images that the patches are from: labels themselves, since indices change when a class is added.
    """

    pixels: NDArray[np.uint8]
    atoms: NDArray[np.int32]
    labels: Array

    def of(self, atom: int) -> list[tuple[NDArray[np.uint8], Any]]:
        """Pictures of one atom, and the label of each; the nearest first."""
        return [(self.pixels[i], self.labels[i]) for i in np.flatnonzero(self.atoms == atom)]


def collect_patches(
    model: DDLCNClassifier, named: Sequence[tuple[str, Any]], labels: Array, show: bool = False
) -> TrainingPatches:
    """Look through images for the patches nearest to a fitted model's atoms.

    Parameters
    ----------
    model : DDLCNClassifier
        With descriptors that have patches to show: dense SIFT, or a network's map.
    named : sequence of (name, image); labels : ndarray (n,)
        Training images and their labels.
    show : bool
        Whether to show progress.
    """
    if len(model.branches_) > 1:
        raise ValueError("patches can be kept of one kind of descriptor only, and this model has several")
    features = model.branches_[0].features
    if not hasattr(features, "read"):
        raise ValueError(f"patches cannot be kept: features={features!r} has no pictures of its own to show")
    layer1, tangents = model.dictionaries_[0], model.tangents_
    atoms = [layer1] if tangents is None else [layer1, tangents.atoms]

    def look(item: tuple[str, Any]) -> tuple[Array, Array, Descriptors, Array]:
        """For every atom the distance of the nearest patch of one image, and which it is."""
        described = features.describe(item[1], name=item[0])
        X = (
            [described.values]
            if tangents is None
            else [described.values, to_length_one(described.values, tangents.floor)]
        )
        distances = np.concatenate(
            [np.square(A).sum(1) - 2 * x @ A.T + np.square(x).sum(1)[:, None] for A, x in zip(atoms, X, strict=True)], 1
        )  # (patches, atoms)
        nearest = distances.argmin(axis=0)
        return distances[nearest, np.arange(len(nearest))], nearest, described, features.read(item[1], name=item[0])

    n_atoms = sum(map(len, atoms))
    found: list[list[tuple[float, Any, NDArray[np.uint8]]]] = [[] for _ in range(n_atoms)]
    looks = track(map_threads(look, named, model.n_jobs), len(named), "finding patches", show)
    for (distances, nearest, described, grey), label in zip(looks, labels.tolist(), strict=True):
        assert described.sizes is not None  # of descriptors that can be read
        for atom in range(n_atoms):
            best = found[atom]
            if len(best) == PER_ATOM and distances[atom] >= best[-1][0]:
                continue
            xy, size = described.xy[nearest[atom]], described.sizes[nearest[atom]]
            best.append((float(distances[atom]), label, cut_patch(grey, xy, size)))
            best.sort(key=lambda one: one[0])
            del best[PER_ATOM:]
    counts = [len(best) for best in found]
    return TrainingPatches(
        np.stack([pixels for best in found for _, _, pixels in best]),
        np.repeat(np.arange(n_atoms, dtype=np.int32), counts),
        np.array([label for best in found for _, label, _ in best], model.classes_.dtype),
    )


def cut_patch(grey: Array, xy: Array, size: float) -> NDArray[np.uint8]:
    """The patch with centre xy and side `size` of an image (H, W) in [0, 1], as a picture (SIDE, SIDE) of bytes."""
    size = int(size)
    left, top = (max(0, round(float(centre) - (size - 1) / 2)) for centre in xy)
    picture = Image.fromarray(np.asarray(grey[top : top + size, left : left + size], np.float32))
    enlarged = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return np.clip(np.round(255 * enlarged), 0, 255).astype(np.uint8)

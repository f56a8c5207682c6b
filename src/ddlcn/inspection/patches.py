"""What an atom looks like: the training patches nearest to it, as small grey pictures.

They show pieces of training images, perhaps of people: a model keeps them only when asked to (`keep_patches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ddlcn.blocks import Branch
from ddlcn.coding.first_order import to_unit_norm
from ddlcn.configuration import BranchConfig
from ddlcn.descriptors import Descriptors, extract
from ddlcn.images import NamedImage
from ddlcn.utils.progress import track
from ddlcn.utils.threads import map_threads

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
        Of layer 1, then of the shared first-order dictionary; ascending, the nearest patch first.
    labels : ndarray (n,)
        Of the images that the patches are from: labels themselves, since indices change when a class is added.
    """

    pixels: NDArray[np.uint8]
    atoms: NDArray[np.int32]
    labels: Array

    def of(self, atom: int) -> list[tuple[NDArray[np.uint8], Any]]:
        """Pictures of one atom, and the label of each; the nearest first."""
        return [(self.pixels[i], self.labels[i]) for i in np.flatnonzero(self.atoms == atom)]


def check_patches(branches: Sequence[BranchConfig]) -> None:
    """Refuse descriptors whose patches cannot be kept, before any work is done."""
    for branch in branches:
        if not hasattr(branch.descriptors, "extract"):
            raise ValueError(
                f"patches cannot be kept: features={branch.descriptors!r} has no pictures of its own to show"
            )


def collect_patches(
    branches: Sequence[Branch], items: Sequence[NamedImage], labels: Array, n_jobs: int | None, show: bool = False
) -> TrainingPatches:
    """Look through images for the patches nearest to the atoms of all branches; the parameters are those below."""
    check_patches([branch.config for branch in branches])
    found = [_collect_branch(branch, items, labels, n_jobs, show) for branch in branches]
    starts = np.cumsum([0, *(branch.n_atoms for branch in branches[:-1])], dtype=np.int32)
    return TrainingPatches(
        np.concatenate([each.pixels for each in found]),
        np.concatenate([each.atoms + start for each, start in zip(found, starts, strict=True)]),
        np.concatenate([each.labels for each in found]),
    )


def _collect_branch(
    branch: Branch, items: Sequence[NamedImage], labels: Array, n_jobs: int | None, show: bool = False
) -> TrainingPatches:
    """Look through images for the patches nearest to the atoms of a branch.

    Parameters
    ----------
    branch : Branch
        With descriptors that keep the picture that they describe: dense SIFT, or a backbone's map.
    items : sequence of n NamedImages; labels : ndarray (n,)
        Training images and their labels.
    n_jobs : int, optional
        Threads.
    show : bool
        Whether to show progress.
    """
    first_order = branch.first_order
    atoms = [branch.dictionaries[0]] if first_order is None else [branch.dictionaries[0], first_order.atoms]

    def look(item: NamedImage) -> tuple[Array, Array, Descriptors, Array]:
        """For every atom the distance of the nearest patch of one image, and which it is."""
        extracted = extract(branch.descriptors, item)
        described = branch.descriptors.finish(extracted)
        X = [described.values]
        if first_order is not None:
            X.append(to_unit_norm(described.values, first_order.floor))
        distances = np.concatenate(
            [np.square(A).sum(1) - 2 * x @ A.T + np.square(x).sum(1)[:, None] for A, x in zip(atoms, X, strict=True)], 1
        )  # (patches, atoms)
        nearest = distances.argmin(axis=0)
        assert extracted.picture is not None  # descriptors that extract keep it
        return distances[nearest, np.arange(len(nearest))], nearest, described, extracted.picture / np.float32(255)

    n_atoms = sum(map(len, atoms))
    found: list[list[tuple[float, Any, NDArray[np.uint8]]]] = [[] for _ in range(n_atoms)]
    looks = track(map_threads(look, items, n_jobs), len(items), "finding patches", show)
    for (distances, nearest, described, grey), label in zip(looks, labels.tolist(), strict=True):
        assert described.sizes is not None  # descriptors with pictures have sizes
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
        np.array([label for best in found for _, label, _ in best], labels.dtype),
    )


def cut_patch(grey: Array, xy: Array, size: float) -> NDArray[np.uint8]:
    """The patch with centre xy and side `size` of an image (H, W) in [0, 1], as a picture (SIDE, SIDE) of bytes."""
    size = int(size)
    left, top = (max(0, round(float(centre) - (size - 1) / 2)) for centre in xy)
    picture = Image.fromarray(np.asarray(grey[top : top + size, left : left + size], np.float32))
    enlarged = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return np.clip(np.round(255 * enlarged), 0, 255).astype(np.uint8)

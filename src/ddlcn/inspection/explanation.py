"""Why: one image's decision in, split exactly among its patches out.

The decision is linear in the feature, and every number of the feature comes from known patches, so

    decision value of a class  =  intercept  +  sum over patches of contributions,

not as an approximation around the image, as gradients would give it, but as an identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Encoding
from ddlcn.images import NamedImage
from ddlcn.svm import LinearSVM

Array = NDArray[Any]


@dataclass(frozen=True)
class AtomShare:
    """What one atom gave to a class's decision value.

    Attributes
    ----------
    atom : int
        Number of the atom: of layer 1, or, from its size on, of the shared first-order dictionary; with several
        kinds of descriptors the numbers of the next continue.
    learned_from : label or None
        The class whose images the atom was learned from; None for a shared one.
    contribution : float
    patch : int
        The patch through which it gave most.
    """

    atom: int
    learned_from: Any
    contribution: float
    patch: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """One image's decision, split among its patches.

    Attributes
    ----------
    classes : ndarray (n_classes,)
    scores : ndarray (n_classes,)
        Decision values.
    intercept : ndarray (n_classes,)
        The part of each that does not depend on the image.
    contributions : ndarray (patches, n_classes)
        The rest: `contributions.sum(axis=0) + intercept` are the scores.
    xy : ndarray (patches, 2); sizes : ndarray (patches,)
        Centres and sides of the patches, in pixels of the image as it was described.
    image_shape : (H, W)
        Of the image as it was described.
    margin : int
        Pixels by which it was continued on every side before.
    """

    classes: Array
    scores: Array
    intercept: Array
    contributions: Array
    xy: Array
    sizes: Array
    image_shape: tuple[int, int]
    margin: int
    _parts: Any  # csr_array (patches, columns): the feature, split
    _weights: Array  # (n_classes, columns)
    _atoms: Array  # (columns,)
    _atom_labels: Sequence[Any]  # one per atom, None for shared ones

    @property
    def ranking(self) -> Array:
        """The classes, best first: the winner, the runner-up, ..."""
        return np.asarray(self.classes[np.argsort(-self.scores, kind="stable")])

    def of(self, label: Any) -> Array:
        """The contributions to one class: ndarray (patches,)."""
        return np.asarray(self.contributions[:, self._find(label)])

    def heat_map(self, label: Any) -> Array:
        """Where the picture speaks for a class (above zero) and where against it: ndarray (H, W) of the picture.

        Every patch spreads its contribution evenly over its pixels, so the sum over all pixels is that of the
        contributions (less what falls on the margin). Where descriptors centre the ink, the picture is the centred one.
        """
        height, width = self.image_shape
        # Corners only, then running sums: a patch costs four additions, however large it is.
        corners = np.zeros((height + 1, width + 1))
        half = (self.sizes - 1) / 2
        left = np.clip(np.round(self.xy[:, 0] - half), 0, width - 1).astype(int)
        top = np.clip(np.round(self.xy[:, 1] - half), 0, height - 1).astype(int)
        right, bottom = (
            np.minimum(left + self.sizes.astype(int), width),
            np.minimum(top + self.sizes.astype(int), height),
        )
        each = self.of(label) / ((right - left) * (bottom - top))
        for rows, columns, sign in ((top, left, 1), (top, right, -1), (bottom, left, -1), (bottom, right, 1)):
            np.add.at(corners, (rows, columns), sign * each)
        heat = corners.cumsum(axis=0).cumsum(axis=1)[:height, :width]
        return heat[self.margin : height - self.margin, self.margin : width - self.margin]

    def top_atoms(self, label: Any, n: int = 5) -> list[AtomShare]:
        """The atoms that gave most to a class's decision value, the largest first."""
        weighted = self._parts.multiply(self._weights[self._find(label)][None, :]).tocoo()
        of_atoms = self._atoms[weighted.col] >= 0  # the rest is a network's response to the whole image
        rows, columns, data = weighted.row[of_atoms], weighted.col[of_atoms], weighted.data[of_atoms]
        used, of_used = np.unique(self._atoms[columns], return_inverse=True)
        totals = np.bincount(of_used, data)
        shares = []
        for i in np.argsort(-totals, kind="stable")[:n].tolist():
            own, atom = of_used == i, int(used[i])
            patches = np.bincount(rows[own], data[own])
            shares.append(AtomShare(atom, self._atom_labels[atom], float(totals[i]), int(patches.argmax())))
        return shares

    def _find(self, label: Any) -> int:
        found = np.flatnonzero(self.classes == label)
        if len(found) == 0:
            raise ValueError(f"{label!r} is none of the classes {', '.join(map(repr, self.classes.tolist()))}")
        return int(found[0])


def weigh_classes(svm: LinearSVM, n_classes: int) -> tuple[Array, Array]:
    """Weights (n_classes, columns) and intercepts (n_classes,): one row per class, of two classes too."""
    weights, intercept = svm.coef, np.atleast_1d(svm.intercept)
    if n_classes == 2:  # one row, for the second class
        return np.concatenate([-weights, weights]), np.concatenate([-intercept, intercept])
    return weights, intercept


def explain(encoding: Encoding, svm: LinearSVM, classes: Array, item: NamedImage) -> Explanation:
    """Split the decision of a fitted classifier about one image among its patches; see `Explanation`.

    Parameters
    ----------
    encoding : Encoding
    svm : LinearSVM
    classes : ndarray (n_classes,)
    item : NamedImage
    """
    if svm.pairwise:
        raise ValueError('svm="libsvm" decides by votes, which cannot be split: fit with svm="liblinear" to explain')
    described, parts = encoding.attribute(item)
    weights, intercept = weigh_classes(svm, len(classes))
    contributions = np.asarray(parts.astype(np.float64) @ weights.T, np.float64)
    assert described.sizes is not None  # `attribute` has one for every patch
    shared = ([None] * (b.n_atoms - len(b.atom_labels)) for b in encoding.branches)
    return Explanation(
        classes=classes,
        scores=contributions.sum(axis=0) + intercept,
        intercept=np.asarray(intercept),
        contributions=contributions,
        xy=described.xy,
        sizes=described.sizes,
        image_shape=described.image_shape,
        margin=int(getattr(encoding.branches[0].descriptors, "border", 0)),
        _parts=parts,
        _weights=weights,
        _atoms=encoding.list_atoms(),
        _atom_labels=[
            label for b, more in zip(encoding.branches, shared, strict=True) for label in [*b.atom_labels, *more]
        ],
    )

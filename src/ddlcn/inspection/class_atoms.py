"""Which atoms speak for a class: of a fitted classifier, without any image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Encoding
from ddlcn.inspection.explanation import weigh_classes
from ddlcn.svm import LinearSVM


def rank_class_atoms(encoding: Encoding, svm: LinearSVM, n_classes: int, n: int) -> NDArray[np.intp]:
    """The atoms of layer 1 that speak most for every class: (n_classes, n), the strongest first.

    By the sum of the positive weights that the SVM gives to an atom in the cells of the pyramid. That is what a class
    has of atoms that all classes share. With several kinds of descriptors, of the first.
    """
    weights, _ = weigh_classes(svm, n_classes)
    n_atoms = len(encoding.branches[0].dictionaries[0])
    atoms = encoding.list_atoms()
    own = np.flatnonzero((atoms >= 0) & (atoms < n_atoms))
    strengths: NDArray[Any] = np.stack([np.bincount(atoms[own], np.maximum(row[own], 0), n_atoms) for row in weights])
    return np.asarray(np.argsort(-strengths, axis=1, kind="stable")[:, :n])

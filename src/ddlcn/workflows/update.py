"""More labels later: new images of old classes, or new classes, without starting over.

The dictionaries stay, so the features of the old images stay what they were; a model that kept them (`keep_features`)
needs only the new images, and a new SVM. `expand` also learns atoms for new classes; that changes every feature, so it
needs the old images again.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.classifier import DDLCNClassifier
from ddlcn.descriptors import keep_descriptors
from ddlcn.images import NamedImage, name_images
from ddlcn.images.copies import add_copies, count_copies
from ddlcn.learning import Seeds, learn_class_atoms
from ddlcn.svm import KeptFeatures
from ddlcn.utils.labels import match_labels
from ddlcn.workflows.learned_from import digest_files

Array = NDArray[Any]

# What was measured on a model says nothing about the next.
MEASURED = ("accuracy", "interval", "tested", "balanced_accuracy")


def update(model: DDLCNClassifier, images: Any, y: Any) -> DDLCNClassifier:
    """A classifier that also knows new images; its dictionaries are the old one's.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted with `keep_features=True`; it is not changed.
    images, y
        New images and their labels; new labels are new classes.
    """
    if model.kept_ is None:
        raise ValueError(
            "this model kept no features of its training images, so it cannot learn more without them: train again on "
            "all images, or keep features next time"
        )
    items = list(name_images(images))
    labels = match_labels(y, model.classes_, len(items))
    features, labels = _encode(model, items, labels)
    together = sparse.vstack([model.kept_.features, features], format="csr")
    files = [*model.card_.get("files", ()), *digest_files([item.image for item in items], model.n_jobs)]
    return _refit(model, KeptFeatures(together, np.concatenate([model.kept_.labels, labels])), files)


def expand(model: DDLCNClassifier, images: Any, y: Any) -> DDLCNClassifier:
    """A classifier whose layer 1 also has atoms for classes that it did not know.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted; it is not changed.
    images, y
        All images, old and new, and their labels.
    """
    images = list(images)
    items = keep_descriptors(images)
    labels = match_labels(y, model.classes_, len(items))
    missing = np.setdiff1d(model.classes_, labels)
    if len(missing):
        raise ValueError(f"there is no image of {missing.tolist()[0]!r}: new atoms need the old images too")
    new = np.setdiff1d(labels, model.classes_)
    expanded = copy.copy(model)
    if len(new):
        own = np.flatnonzero(np.isin(labels, new))
        training = [items[i] for i in own], np.searchsorted(new, labels[own])
        # The first two children of the seed, as in `fit`: other branches go on from there.
        seeds = Seeds.spawn(model.random_state)
        expanded.branches_ = []
        for branch in model.branches_:
            if branch.config.shared_atoms:  # they belong to no class
                expanded.branches_.append(branch)
                continue
            old = branch.dictionaries[0]
            n_atoms = len(old) // len(np.unique(branch.atom_labels))
            atoms = learn_class_atoms(branch.config, branch.descriptors, *training, n_atoms, seeds, model.n_jobs)
            layers = [np.concatenate([old, atoms.astype(old.dtype)]), *branch.dictionaries[1:]]
            of_atoms = np.concatenate([branch.atom_labels, np.repeat(new, n_atoms)])
            expanded.branches_.append(replace(branch, dictionaries=layers, atom_labels=of_atoms, _blocks=[]))
        expanded.patches_ = None
    files = digest_files(images, model.n_jobs)
    return _refit(expanded, KeptFeatures(*_encode(expanded, items, labels)), files)


def _encode(model: DDLCNClassifier, items: Sequence[NamedImage], labels: Array) -> tuple[Any, Array]:
    """Features of images and of their copies, and the label of each."""
    copies = model.parameters_["copies"]
    seen = add_copies(items, copies, Seeds.spawn(model.random_state).copies)
    features = model.encoding.transform(seen, model.n_jobs, model.verbose > 0)
    return features, np.repeat(labels, 1 + count_copies(copies))


def _refit(model: DDLCNClassifier, kept: KeptFeatures, files: Sequence[str]) -> DDLCNClassifier:
    """The same dictionaries, and an SVM learned from these features, of files with these digests."""
    updated = copy.copy(model)
    updated.classes_, labels = np.unique(kept.labels, return_inverse=True)
    updated.fit_svm(kept, labels, Seeds.spawn(model.random_state).folds)
    updated.kept_ = kept
    card = {name: value for name, value in model.card_.items() if name not in MEASURED}
    counts = np.bincount(labels[:: 1 + count_copies(model.parameters_["copies"])]).tolist()
    updated.card_ = card | {
        "images_per_class": counts, "how": "not tested since images were added", "files": list(files)
    }  # fmt: skip
    return updated

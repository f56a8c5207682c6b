"""More labels later: new images of old classes, or new classes, without starting over.

The dictionaries stay, so the features of the old images stay what they were; a model that kept them (`keep_features`)
needs only the new images, and a new SVM. `grow` also learns atoms for new classes; that changes every feature, so it
needs the old images again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ddlcn._validation import seed_sequence
from ddlcn.dictionaries import learn_layer1
from ddlcn.features import describe_by_class, name_images

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class KeptFeatures:
    """The features that a classifier was fitted on.

    Attributes
    ----------
    features : csr_array (n, columns), float32
    labels : ndarray (n,)
        Labels themselves, not indices.
    """

    features: Any
    labels: Array

    # What `ddlcn.svm.train` asks of features.
    @property
    def n_images(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.features.shape[1])

    def take(self, rows: slice) -> Any:
        return self.features[rows]

    def estimate_nonzeros(self) -> int:
        return int(self.features.nnz)


def add_images(model: DDLCNClassifier, images: Any, y: Any) -> DDLCNClassifier:
    """A classifier that also knows new images; its dictionaries are the old one's.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted, with `keep_features`; it is not changed.
    images, y
        New images and their labels; new labels are new classes.
    """
    check_is_fitted(model)
    if model.kept_ is None:
        raise ValueError(
            "this model kept no features of its training images, so it cannot learn more without them: train again on "
            "all images, or keep features next time"
        )
    named, labels = list(name_images(images)), _match(y, model)
    if len(labels) != len(named):
        raise ValueError(f"y has {len(labels)} labels for {len(named)} images: pass one label per image")
    F = model._get_network().transform(named, model.n_jobs, model.verbose > 0)
    together = sparse.vstack([model.kept_.features, F], format="csr")
    return _refit(model, KeptFeatures(together, np.concatenate([model.kept_.labels, labels])))


def grow(model: DDLCNClassifier, images: Any, y: Any) -> DDLCNClassifier:
    """A classifier whose layer 1 also has atoms for classes that it did not know.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted; it is not changed.
    images, y
        All images, old and new, and their labels.
    """
    check_is_fitted(model)
    named, labels = list(name_images(images)), _match(y, model)
    missing = np.setdiff1d(model.classes_, labels)
    if len(missing):
        raise ValueError(f"there is no image of {missing.tolist()[0]!r}: growing needs the old images too")
    new = np.setdiff1d(labels, model.classes_)
    grown = copy.copy(model)
    if len(new):
        own = np.flatnonzero(np.isin(labels, new))
        seeds = seed_sequence(model.random_state).spawn(2)
        chosen = [named[i] for i in own]
        indices = np.searchsorted(new, labels[own])
        grown.branches_ = []
        for branch in model.branches_:
            old = branch.dictionaries[0]
            n_atoms = len(old) // len(np.unique(branch.atom_labels))
            by_class = describe_by_class(branch.features, chosen, indices, model.dictionary_images, seeds[0])
            atoms = learn_layer1(by_class, n_atoms, model.l1_radius, seeds[1], model.n_jobs)
            dictionaries = [np.concatenate([old, atoms.astype(old.dtype)]), *branch.dictionaries[1:]]
            of_atoms = np.concatenate([branch.atom_labels, np.repeat(new, n_atoms)])
            grown.branches_.append(replace(branch, dictionaries=dictionaries, atom_labels=of_atoms))
        grown._network = grown.patches_ = None
    F = grown._get_network().transform(named, model.n_jobs, model.verbose > 0)
    return _refit(grown, KeptFeatures(F, labels))


def _match(y: Any, model: DDLCNClassifier) -> Array:
    labels = np.asarray(y)
    if labels.dtype.kind != model.classes_.dtype.kind:
        raise ValueError(
            f"labels are {labels.dtype.name}, the model's classes {model.classes_.dtype.name}: pass the same"
        )
    return labels


def _refit(model: DDLCNClassifier, kept: KeptFeatures) -> DDLCNClassifier:
    updated = copy.copy(model)
    updated.classes_, indices = np.unique(kept.labels, return_inverse=True)
    updated._fit_svm(kept, indices)
    updated.kept_ = kept
    # What was measured before is no longer about this model.
    card = {name: value for name, value in model.card_.items() if name not in ("accuracy", "interval", "tested")}
    updated.card_ = card | {
        "images_per_class": np.bincount(indices).tolist(),
        "how": "not tested since images were added",
    }
    return updated

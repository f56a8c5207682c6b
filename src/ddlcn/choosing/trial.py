"""Folds of training images on which recipes are tried. What several of them share is learned and coded once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ddlcn.blocks import Branch, Encoding
from ddlcn.choosing.branch_weights import weigh_evenly
from ddlcn.configuration import BranchConfig, EncoderConfig
from ddlcn.images import NamedImage
from ddlcn.images.copies import add_copies
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.svm import KeptFeatures, SVMConfig, to_logits, train

# With fewer images of a class, as many as there are.
MOST_FOLDS = 5


class Trial:
    """Some training images, on folds of which recipes are tried.

    Dictionaries are learned from all of them, once for all folds; the SVM learns from the images of the other folds,
    and their copies. Dictionaries have no labels, and those of every recipe have seen the images: so what is compared
    is fair, though what a recipe reaches is a little too high.

    Parameters
    ----------
    training : TrainingImages
    chosen : ndarray of int
        Those of its images that are used, at least two of every class.
    seeds : Seeds
        Copied.
    n_jobs : int, optional
    """

    def __init__(self, training: TrainingImages, chosen: NDArray[np.intp], seeds: Seeds, n_jobs: int | None) -> None:
        self.labels = training.labels[chosen]
        self.n_folds = min(MOST_FOLDS, int(np.bincount(self.labels).min()))
        self._images = TrainingImages([training.items[i] for i in chosen.tolist()], self.labels, training.classes)
        self._seeds, self._n_jobs = seeds, n_jobs
        self._branches: dict[str, Branch] = {}
        self._features: dict[tuple[str, str], Any] = {}

    def decide(self, config: EncoderConfig, parameters: Mapping[str, Any]) -> NDArray[Any]:
        """Decision values (n, classes) of every image, by an SVM that has not seen it."""
        copies = parameters["copies"]
        seen = add_copies(self._images.items, copies, copy.deepcopy(self._seeds).copies)
        features = self._encode(config, f"{copies} copies", seen)
        n_classes, n_rows = len(self._images.classes), len(seen) // len(self.labels)  # each image, then its copies
        svm = SVMConfig(n_classes, config.C, "liblinear", np.ones(n_classes))
        logits = np.empty((len(self.labels), n_classes))
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=0)
        for train_on, test_on in folds.split(self.labels, self.labels):
            rows = (train_on[:, None] * n_rows + np.arange(n_rows)).ravel()
            y = np.repeat(self.labels[train_on], n_rows)
            trained = train(KeptFeatures(features[rows], y), y, svm, self._n_jobs).svm
            logits[test_on] = to_logits(trained.decide(features[test_on * n_rows]))
        return logits

    def _encode(self, config: EncoderConfig, which: str, items: Sequence[NamedImage]) -> Any:
        """Features of images, one kind of descriptor at a time: recipes differ by the weights of the same kinds."""
        weights = config.weights or weigh_evenly(len(config.branches))
        columns = []
        for branch, weight in zip(config.branches, weights, strict=True):
            key = (repr(branch), which)
            if key not in self._features:
                encoding = Encoding([self._learn(branch)], (1.0,))
                self._features[key] = encoding.transform(items, self._n_jobs)
            columns.append(self._features[key] * np.float32(np.sqrt(weight)))
        return columns[0] if len(columns) == 1 else sparse.csr_array(sparse.hstack(columns, format="csr"))

    def _learn(self, config: BranchConfig) -> Branch:
        key = repr(config)
        if key not in self._branches:
            fresh = replace(config, descriptors=clone(config.descriptors, safe=False))
            self._branches[key] = learn_branch(fresh, self._images, copy.deepcopy(self._seeds), self._n_jobs)
        return self._branches[key]

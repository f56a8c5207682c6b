"""One split of training images on which recipes are tried. What several of them share is learned and coded once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ddlcn.blocks import Branch, Encoding
from ddlcn.choosing.branch_weights import weigh_evenly
from ddlcn.configuration import BranchConfig, EncoderConfig
from ddlcn.images import NamedImage
from ddlcn.images.copies import add_copies
from ddlcn.learning import Seeds, TrainingImages, learn_branch
from ddlcn.svm import KeptFeatures, SVMConfig, to_logits, train


class Trial:
    """Images to learn from and images to recognise.

    Parameters
    ----------
    training : TrainingImages
    inside, outside : ndarrays of int
        Those of its images that recipes learn from, and those that they are judged on.
    seeds : Seeds
        Copied.
    n_jobs : int, optional
    """

    def __init__(
        self,
        training: TrainingImages,
        inside: NDArray[np.intp],
        outside: NDArray[np.intp],
        seeds: Seeds,
        n_jobs: int | None,
    ) -> None:
        items, labels = training.items, training.labels
        self._own = TrainingImages([items[i] for i in inside.tolist()], labels[inside], training.classes)
        self._others = [items[i] for i in outside.tolist()]
        self.labels, self.y_true = labels[inside], labels[outside]
        self._seeds, self._n_jobs = seeds, n_jobs
        self._branches: dict[str, Branch] = {}
        self._features: dict[tuple[str, str], Any] = {}

    def rank(self, config: EncoderConfig, parameters: Mapping[str, Any]) -> NDArray[np.intp]:
        """How many classes come before the true one of the images outside, by settings learned from those inside."""
        features, y, _ = self._encode_inside(config, parameters["copies"])
        others = self._encode(config, "outside", self._others)
        return self._rank(features, y, others, self.y_true, config.C)

    def rank_inside(self, config: EncoderConfig, parameters: Mapping[str, Any], folds: Any) -> NDArray[np.intp]:
        """The same of the images inside: on each fold the SVM learns from the others, and from their copies.

        Dictionaries have seen all of them. So this compares only what shares them.

        Parameters
        ----------
        folds : object with split(X, y), of scikit-learn
        """
        labels = self.labels
        features, y, n_rows = self._encode_inside(config, parameters["copies"])
        ranks = np.empty(len(labels), np.intp)
        for train_on, test_on in folds.split(labels, labels):
            rows = (train_on[:, None] * n_rows + np.arange(n_rows)).ravel()
            originals = features[test_on * n_rows]
            ranks[test_on] = self._rank(features[rows], y[rows], originals, labels[test_on], config.C)
        return ranks

    def _rank(
        self, features: Any, y: NDArray[np.intp], others: Any, y_true: NDArray[np.intp], C: float
    ) -> NDArray[np.intp]:
        """Of other features (n, columns), how many classes an SVM puts before the true one: (n,)."""
        n_classes = len(self._own.classes)
        svm = SVMConfig(n_classes, C, "liblinear", np.ones(n_classes))
        logits = to_logits(train(KeptFeatures(features, y), y, svm, self._n_jobs).svm.decide(others))
        return np.asarray((logits > logits[np.arange(len(logits)), y_true][:, None]).sum(axis=1))

    def _encode_inside(self, config: EncoderConfig, copies: Any) -> tuple[Any, NDArray[np.intp], int]:
        """Features of the images inside, each followed by its copies; their labels; rows per image."""
        seen = add_copies(self._own.items, copies, copy.deepcopy(self._seeds).copies)
        n_rows = len(seen) // len(self._own.items)
        return self._encode(config, f"inside, {copies} copies", seen), np.repeat(self._own.labels, n_rows), n_rows

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
            self._branches[key] = learn_branch(fresh, self._own, copy.deepcopy(self._seeds), self._n_jobs)
        return self._branches[key]

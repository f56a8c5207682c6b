"""Pictures that are probably in the wrong folder: what models that did not learn from them make of them.

Every picture is held out once, and a model says how likely it is of each class. In doubt is what looks rather like
another class; the first are those whose own class is least likely beside that. Surely in doubt is what is as likely of
the other class as that class's own pictures are in the mean (confident learning: Northcutt, Jiang and Chuang 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone

from ddlcn.classifier import DDLCNClassifier
from ddlcn.descriptors import keep_descriptors, keep_pixels
from ddlcn.model_selection.splits import N_FOLDS, Split, cover_folds
from ddlcn.svm import find_temperature, to_logits
from ddlcn.utils.labels import check_labels
from ddlcn.utils.progress import track
from ddlcn.workflows.train import choose_for, take_recipe

Array = NDArray[Any]


@dataclass(frozen=True)
class Doubt:
    """A picture that looks like another class than its own.

    Attributes
    ----------
    index : int
        Of the picture.
    looks_like : label
    probability, own_probability : float
        Of that class, and of its own.
    is_sure : bool
        Whether it is as likely of that class as the pictures of that class are in the mean.
    """

    index: int
    looks_like: Any
    probability: float
    own_probability: float
    is_sure: bool


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What was said about every picture while it was held out.

    Attributes
    ----------
    classes : ndarray (n_classes,)
    labels : ndarray (n,)
    probabilities : ndarray (n, n_classes)
        Rows of NaN where nothing could be said: the only picture of a class.
    """

    classes: Array
    labels: Array
    probabilities: Array

    def list_doubts(self) -> list[Doubt]:
        """Pictures that look rather like another class, the surest first."""
        p, y = self.probabilities, np.searchsorted(self.classes, self.labels)
        own, likeliest = p[np.arange(len(y)), y], p.argmax(axis=1)
        known = np.isfinite(own)
        usual = np.full(len(self.classes), np.inf)
        for c in np.unique(y[known]):
            usual[c] = own[known & (y == c)].mean()
        order = [i for i in np.argsort(self.margins, kind="stable").tolist() if known[i] and likeliest[i] != y[i]]
        return [
            Doubt(i, self.classes[c].item(), float(p[i, c]), float(own[i]), bool(p[i, c] >= usual[c]))
            for i, c in ((i, likeliest[i]) for i in order)
        ]

    @property
    def margins(self) -> Array:
        """How much likelier its own class is than the likeliest other, as a logarithm (n,); inf: nothing is known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.maximum(self.probabilities, 1e-300))
        rows, y = np.arange(len(self.labels)), np.searchsorted(self.classes, self.labels)
        own = logs[rows, y]
        others = logs.copy()
        others[rows, y] = -np.inf
        return np.asarray(np.where(np.isfinite(own), own - others.max(axis=1), np.inf))


def hold_out_all(
    model: DDLCNClassifier,
    paths: Sequence[Any],
    labels: Array,
    groups: NDArray[np.intp],
    say: Callable[[str], None] = lambda _: None,
    show: bool = False,
) -> HeldOut:
    """Learn from two thirds of the pictures, ask about the others, three times.

    Parameters
    ----------
    model : DDLCNClassifier
        Not fitted; one with recipes takes the one that suits these pictures.
    paths : sequence of n images; labels, groups : ndarrays (n,)
        Images of one group (near-duplicates) are never on both sides.
    say : function of a line of text
    show : bool
        Whether to show progress.
    """
    items, classes = keep_descriptors(paths), check_labels(labels, len(paths))[0]
    if model.recipes:
        name, why = choose_for(model, items, labels, groups)
        say(f"chosen: {why}")
        model = take_recipe(model, name)
    if model.copies or len(model.configure().branches) > 1:
        keep_pixels(items)
    splits, _ = cover_folds(labels, groups, N_FOLDS, int(model.random_state))
    logits = np.full((len(labels), len(classes)), np.nan)

    def ask(split: Split) -> None:
        fitted = clone(model).set_params(verbose=0)
        fitted.fit([items[i] for i in split.train.tolist()], labels[split.train])
        decisions = to_logits(fitted.decision_function([items[i] for i in split.test.tolist()]))
        of_all = np.full((len(split.test), len(classes)), decisions.min() - 1.0)  # a class that it could not learn
        of_all[:, np.searchsorted(classes, fitted.classes_)] = decisions
        logits[split.test] = of_all

    for split in track(splits, len(splits), "learning from two thirds, asking about the others", show):
        ask(split)
    known = np.isfinite(logits).all(axis=1)
    if known.any():
        temperature = find_temperature(logits[known], np.searchsorted(classes, labels[known]))
        logits[known] = special.softmax(temperature * logits[known], axis=1)
    return HeldOut(classes, labels, logits)

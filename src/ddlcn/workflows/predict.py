"""A fitted model and a stream of images in, one prediction per image out.

An image that cannot be read is a prediction too, with the reason, and stops nothing. Images go through in small
batches, and nothing piles up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlcn.classifier import DDLCNClassifier
from ddlcn.decisions import Decided, iter_decisions
from ddlcn.images import NamedImage
from ddlcn.svm import Calibrator


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says about one image.

    Attributes
    ----------
    name : str
        What the image is called: its path, as a rule.
    ranking : list of (label, probability)
        All classes, the likeliest first; empty where the image cannot be read.
    is_known : bool
        Whether it looks like an image of any of the classes.
    error : str
        Why the image cannot be read; empty where it can.
    """

    name: str
    ranking: list[tuple[Any, float]]
    is_known: bool
    error: str = ""

    @property
    def label(self) -> Any:
        """The likeliest class; None for an image that cannot be read."""
        return self.ranking[0][0] if self.ranking else None


def predict_each(
    model: DDLCNClassifier, named: Iterable[tuple[str, Any]], n_jobs: int | None = None
) -> Iterator[Prediction]:
    """Predict images one after the other, in their order.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted.
    named : iterable of (name, image)
        A generator is read a few batches ahead.
    n_jobs : int, optional
        Threads; None means the model's.
    """
    encoding, svm, calibrator = model.encoding, model.linear_svm_, model.calibrator_
    n_jobs = model.n_jobs if n_jobs is None else n_jobs
    calibrator.find(n_jobs)
    classes = model.classes_.tolist()
    items = (NamedImage(*each) for each in named)
    for batch in iter_decisions(encoding, svm, items, n_jobs, skip_unreadable=True):
        yield from _rank(batch, calibrator, classes)


def _rank(batch: Decided, calibrator: Calibrator, classes: list[Any]) -> Iterator[Prediction]:
    """Predictions of one batch."""
    readable = iter(range(len(batch.decisions)))
    probabilities = calibrator.probabilities(batch.decisions, 1)  # (readable, classes)
    known = calibrator.is_known(batch.decisions, 1)
    orders = np.argsort(-probabilities, axis=1, kind="stable")
    for item, error in zip(batch.items, batch.errors, strict=True):
        if error:
            yield Prediction(item.name, [], False, error)
            continue
        i = next(readable)
        ranking = [(classes[c], float(probabilities[i, c])) for c in orders[i].tolist()]
        yield Prediction(item.name, ranking, bool(known[i]))

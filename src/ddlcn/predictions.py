"""A fitted model and a stream of images in, one prediction per image out.

An image that cannot be read is a prediction too, with the reason, and stops nothing. Each image is judged alone, by a
thread of its own, and nothing piles up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ddlcn._threads import map_threads
from ddlcn.features import ImageReadError

if TYPE_CHECKING:
    from ddlcn.classifier import DDLCNClassifier

Array = NDArray[Any]


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
    """Judge images one after the other, in their order.

    Parameters
    ----------
    model : DDLCNClassifier
        Fitted.
    named : iterable of (name, image)
        A generator is read only a few images ahead.
    n_jobs : int, optional
        Threads; None means the model's.
    """
    check_is_fitted(model)
    n_jobs = model.n_jobs if n_jobs is None else n_jobs
    network, machine, calibrator = model._get_network(), model._machine, model._calibrator
    calibrator.find(n_jobs)  # once, not by every thread
    classes = model.classes_.tolist()

    def judge(item: tuple[str, Any]) -> Prediction:
        try:
            decisions = machine.decide(network.transform([item], n_jobs=1))
        except ImageReadError as error:
            return Prediction(item[0], [], False, str(error))
        probabilities = calibrator.probabilities(decisions, 1)[0]
        order = np.argsort(-probabilities, kind="stable").tolist()
        ranking = [(classes[c], float(probabilities[c])) for c in order]
        return Prediction(item[0], ranking, bool(calibrator.is_known(decisions, 1)[0]))

    return map_threads(judge, named, n_jobs)

"""Images to decision values, batch by batch: the one road of every prediction.

A thread describes, codes, pools and decides a batch before it takes the next, so nothing piles up. An image that cannot
be read stops everything, or is skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ddlcn.blocks import Encoding
from ddlcn.images import ImageReadError, NamedImage, name_images
from ddlcn.svm import LinearSVM


class Decided(NamedTuple):
    """One batch.

    Attributes
    ----------
    items : list of NamedImages
    decisions : ndarray (readable images, classes), or (readable images,) for two classes
    errors : list of str
        For every image why it cannot be read; "" where it can.
    """

    items: list[NamedImage]
    decisions: NDArray[Any]
    errors: list[str]


def iter_decisions(
    encoding: Encoding, svm: LinearSVM, images: Any, n_jobs: int | None, skip_unreadable: bool = False
) -> Iterator[Decided]:
    """Yield decision values of consecutive images, in order.

    Parameters
    ----------
    encoding : Encoding
    svm : LinearSVM
    images : iterable of images
        As `DDLCNClassifier.predict` takes them; a generator is read a few batches ahead.
    n_jobs : int, optional
        Threads.
    skip_unreadable : bool
        Whether an image that cannot be read is reported instead of raising ImageReadError.
    """

    def decide(batch: list[NamedImage]) -> Decided:
        try:
            return Decided(batch, svm.decide(encoding.encode(batch)), [""] * len(batch))
        except ImageReadError as error:
            if not skip_unreadable:
                raise
            if len(batch) == 1:
                return Decided(batch, np.empty((0,) if svm.n_classes == 2 else (0, svm.n_classes)), [str(error)])
        singly = [decide([item]) for item in batch]
        decisions = np.concatenate([each.decisions for each in singly])
        return Decided(batch, decisions, [each.errors[0] for each in singly])

    return encoding.map_batches(decide, name_images(images), n_jobs)

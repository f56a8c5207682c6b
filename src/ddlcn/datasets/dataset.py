"""One data set: its images, not yet read, and their classes and names.

In: the files that a loader found. Out: `Dataset`, whose images can be passed to `DDLCNClassifier.fit` or
`DenseSIFT.transform`; pixels are read later, in batches (docs/method.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.datasets.catalogue import Record


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images with their classes, as `load_dataset` returns them.

    Parameters
    ----------
    name : str
        The argument of `load_dataset`, such as "yaleb".
    title : str
        The name for headings, such as "Extended Yale B".
    images : sequence of n images, or ndarray of shape (n, H, W)
        Paths, archive members, or arrays if all are small: anything that `read_image` accepts.
    labels : ndarray of shape (n,), intp
        Class of each image: an index into `class_names`.
    class_names : tuple of str
        Names of the classes, in the order of the indices.
    image_names : tuple of n str
        Name of each image inside the data set, independent of how the set is packed.
    is_test : ndarray of shape (n,), bool, optional
        The distribution's test images, if it has a fixed split.
    runs : ndarray of shape (n,), intp, optional
        The distribution's own repetitions: number of the run of every image, from 0. A run is a task of its own: its
        classes and images are in no other.
    shows_people : bool
        Whether its images are portraits, which are never shown in a report.
    people_classes : frozenset of str
        Classes that are portraits, in a data set of objects.
    stamp : str
        Distinguishes data sets with the same names (sizes and times of the files of a user's folder).
    """

    name: str
    title: str
    images: Sequence[Any] | NDArray[Any]
    labels: NDArray[np.intp]
    class_names: tuple[str, ...]
    image_names: tuple[str, ...]
    is_test: NDArray[np.bool_] | None = None
    runs: NDArray[np.intp] | None = None
    shows_people: bool = False
    people_classes: frozenset[str] = frozenset()
    stamp: str = ""

    def __post_init__(self) -> None:
        columns = (self.images, self.labels, self.image_names, self.is_test, self.runs)
        counts = {len(column) for column in columns if column is not None}
        if len(counts) > 1:
            raise ValueError(
                f"data set {self.name!r}: images, labels, image_names, is_test and runs differ in number {counts}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        split = "" if self.is_test is None else f", {int(self.is_test.sum())} of them for testing"
        runs = "" if self.runs is None else f", {len(np.unique(self.runs))} runs"
        return f"Dataset({self.name!r}, {len(self)} images{split}, {len(self.class_names)} classes{runs})"

    def take(self, chosen: NDArray[Any]) -> Dataset:
        """The data set of some images, with the classes that occur among them only.

        Parameters
        ----------
        chosen : ndarray of shape (m,), intp; or of shape (n,), bool
            Indices of images, or which to take.

        Returns
        -------
        dataset : Dataset
            Its labels are 0, 1, ... in the order of `class_names`, which keep their order.
        """
        indices = np.arange(len(self))[chosen]
        classes, labels = np.unique(self.labels[indices], return_inverse=True)
        is_array = isinstance(self.images, np.ndarray)
        return replace(
            self,
            images=self.images[indices] if is_array else [self.images[i] for i in indices.tolist()],
            labels=labels.astype(np.intp),
            class_names=tuple(self.class_names[c] for c in classes.tolist()),
            image_names=tuple(self.image_names[i] for i in indices.tolist()),
            is_test=None if self.is_test is None else self.is_test[indices],
            runs=None if self.runs is None else self.runs[indices],
        )

    def may_show(self, class_index: int) -> bool:
        """Whether pictures of this class may be shown in a report: not if they are portraits."""
        return not self.shows_people and self.class_names[class_index] not in self.people_classes

    @cached_property
    def identity(self) -> str:
        """Sixteen hexadecimal digits from names and labels (no pixel is read): a key for caches."""
        digest = hashlib.sha256()
        for text in (self.name, self.stamp, *self.class_names, "", *self.image_names):
            digest.update(text.encode() + b"\0")
        digest.update(self.labels.astype("<i8").tobytes())
        if self.is_test is not None:
            digest.update(self.is_test.tobytes())
        if self.runs is not None:
            digest.update(self.runs.astype("<i8").tobytes())
        return digest.hexdigest()[:16]


def make_dataset(record: Record, found: Iterable[tuple[str, str, Any]]) -> Dataset:
    """Make a data set of the images that a loader found, sorted by class and image name.

    Parameters
    ----------
    record : Record
        Provides name and title. Counts are not checked here.
    found : iterable of (str, str, image)
        Class name, image name and image.
    """
    items = sorted(found, key=lambda item: item[:2])
    class_names = tuple(sorted({class_name for class_name, _, _ in items}))
    index = {class_name: i for i, class_name in enumerate(class_names)}
    return Dataset(
        name=record.name,
        title=record.title,
        images=[image for _, _, image in items],
        labels=np.array([index[class_name] for class_name, _, _ in items], np.intp),
        class_names=class_names,
        image_names=tuple(image_name for _, image_name, _ in items),
        shows_people=record.shows_people,
        people_classes=record.people_classes,
    )


def check_counts(dataset: Dataset, record: Record, where: object) -> Dataset:
    """Return the data set; raises ValueError if its numbers of images and classes are not the distribution's."""
    for noun, found, expected in (
        ("classes", len(dataset.class_names), record.n_classes),
        ("images", len(dataset), record.n_images),
    ):
        if found != expected:
            raise ValueError(
                f"{where}: found {found:,} {noun} where the distribution of {record.title} has {expected:,}: "
                f"unpack it or get it again"
            )
    return dataset

"""The forward pass: images in, features out, block by block of columns, in one concatenation.

    image -> descriptors --+-- codes, max pooling ----+
                           +-- first-order averages --+-- weighted, side by side -> feature of unit norm
                           +-- the whole image -------+
          -> other descriptors ...

A batch of images is described, coded and pooled by one thread before it takes the next, so memory does not grow with
the number of images, only the output does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ddlcn.descriptors import Descriptors, describe
from ddlcn.images import NamedImage
from ddlcn.utils.progress import track
from ddlcn.utils.sparse_rows import stack_rows
from ddlcn.utils.threads import map_threads

Out = TypeVar("Out")

# Images that one thread takes at a time: enough to fill a coding block even with the 9 patches of a digit, few enough
# that the descriptors of large pictures at three scales stay near 100 MB a thread.
IMAGES_PER_BATCH = 16


class Encoding:
    """All blocks of all branches side by side: images -> features.

    Parameters
    ----------
    branches : sequence of Branch, or of any object with `descriptors`, `collect` and `blocks`
    weights : sequence of float
        How much each branch counts; they sum to one. A branch that does not count is not described.
    """

    def __init__(self, branches: Sequence[Any], weights: Sequence[float]) -> None:
        self.branches, self.weights = list(branches), tuple(weights)
        self.n_columns = sum(block.n_columns for branch in branches for _, block in branch.blocks)

    def encode(self, items: Sequence[NamedImage]) -> Any:
        """Features of a few images, in the calling thread: csr_array (images, n_columns)."""
        columns = []
        for branch, branch_weight in zip(self.branches, self.weights, strict=True):
            if branch_weight == 0.0:
                n_columns = sum(block.n_columns for _, block in branch.blocks)
                columns.append(sparse.csr_array((len(items), n_columns), dtype=np.float32))
                continue
            batch = branch.collect([describe(branch.descriptors, item) for item in items])
            for weight, block in branch.blocks:
                columns.append(_scale(block.pool(batch), branch_weight * weight))
        return columns[0] if len(columns) == 1 else sparse.csr_array(sparse.hstack(columns, format="csr"))

    def map_batches(
        self, work: Callable[[list[NamedImage]], Out], items: Iterable[NamedImage], n_jobs: int | None
    ) -> Generator[Out]:
        """Yield `work(batch)` for consecutive batches of images, in order, by `n_jobs` threads."""
        return map_threads(work, _cut(iter(items)), n_jobs)

    def transform(
        self, items: Sequence[NamedImage], n_jobs: int | None, show: bool = False, max_bytes: int | None = None
    ) -> Any:
        """All features as one csr_array (n_images, n_columns), held once: peak memory is the output and one batch.

        None if they need more than `max_bytes`.
        """
        n_batches = count_batches(len(items))
        blocks = self.map_batches(self.encode, items, n_jobs)
        shape = (len(items), self.n_columns)
        return stack_rows(blocks, shape, max_bytes, lambda each: track(each, n_batches, "coding images", show))

    def attribute(self, item: NamedImage) -> tuple[Descriptors, Any]:
        """The patches of one image, and its feature split among them: csr_array (patches, n_columns).

        The sum of the rows is the feature. The patches of all branches are placed on the image as the first sees it.
        """
        described = [describe(branch.descriptors, item) for branch in self.branches]
        height, width = described[0].image_shape
        xy, sizes, parts = [], [], []
        for d, branch, branch_weight in zip(described, self.branches, self.weights, strict=True):
            scale = np.array([width / d.image_shape[1], height / d.image_shape[0]], np.float32)
            xy.append((d.xy + 0.5) * scale - 0.5)
            sizes.append((np.ones(len(d), np.float32) if d.sizes is None else d.sizes) * scale.mean())
            batch = branch.collect([d])
            split = [
                _scale(block.attribute(batch, branch.descriptors, item), branch_weight * weight)
                for weight, block in branch.blocks
            ]
            parts.append(sparse.hstack(split, format="csr"))
        n_patches = sum(map(len, xy))
        places = Descriptors(
            np.empty((n_patches, 0), np.float32), np.concatenate(xy), (height, width), np.concatenate(sizes)
        )
        return places, sparse.csr_array(sparse.block_diag(parts, format="csr"))

    def list_atoms(self) -> NDArray[np.intp]:
        """The atom behind every column (n_columns,): of layer 1, then of the shared first-order dictionary.

        The numbers of a later branch continue those of the earlier. -1 where there is none: whole-image responses.
        """
        numbers, start = [], 0
        for branch in self.branches:
            own = np.concatenate([block.list_atoms() for _, block in branch.blocks])
            numbers.append(np.where(own < 0, own, own + start))
            start += branch.n_atoms
        return np.concatenate(numbers)


class EncodedImages:
    """The features of a list of images, computed when asked for, so that they need not all be held (`FeatureRows`).

    Parameters
    ----------
    encoding : Encoding
    items : sequence of NamedImages
    n_jobs : int, optional
        Threads.
    show : bool
        Whether to show progress.
    """

    def __init__(self, encoding: Encoding, items: Sequence[NamedImage], n_jobs: int | None, show: bool = False) -> None:
        self._encoding, self._items, self._n_jobs, self._show = encoding, items, n_jobs, show
        self.n_images, self.n_columns = len(items), encoding.n_columns

    def take(self, rows: slice) -> Any:
        """The features of some of the images: csr_array (rows, n_columns)."""
        return self._encoding.transform(self._items[rows], self._n_jobs, self._show)

    def take_all(self, max_bytes: int | None) -> Any | None:
        """The features of all images, or None if they need more memory than that."""
        return self._encoding.transform(self._items, self._n_jobs, self._show, max_bytes)


def count_batches(n_images: int) -> int:
    """Number of batches that n_images are cut into."""
    n_small = IMAGES_PER_BATCH.bit_length() - 1  # those of 1, 2, 4, ... images
    if n_images < IMAGES_PER_BATCH:
        return n_images.bit_length()
    return n_small + -(-(n_images - IMAGES_PER_BATCH + 1) // IMAGES_PER_BATCH)


def _scale(features: Any, weight: float) -> Any:
    """Features times the square root of their weight."""
    return features if weight == 1.0 else features * np.float32(np.sqrt(weight))


def _cut(items: Iterator[NamedImage]) -> Iterator[list[NamedImage]]:
    """Batches of 1, 2, 4, ... images up to IMAGES_PER_BATCH: whoever waits for the first result has it at once."""
    size = 1
    while batch := list(islice(items, size)):
        yield batch
        size = min(2 * size, IMAGES_PER_BATCH)

"""Images in, features out, batch by batch: one thread does a whole batch before it takes the next.

So nothing but the output grows with the number of images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ddlcn._progress import track
from ddlcn._sparse import GrowingCSR
from ddlcn._threads import map_threads

# What an image is called in messages, and the image: a path, an array, a PIL image.
NamedImage = tuple[str, Any]

# Images that one thread takes at a time: enough to fill a coding block even with the 9 patches of a digit, few enough
# that the descriptors of large pictures at three scales stay near 100 MB a thread.
IMAGES_PER_BATCH = 16


class FeatureStream:
    """What makes features of a batch makes those of any number of images."""

    n_columns: int

    def features_of_batch(self, batch: Sequence[NamedImage]) -> Any:
        """Features of a few images, in the calling thread: csr_array (images of the batch, n_columns)."""
        raise NotImplementedError

    def iter_features(self, named: Iterable[NamedImage], n_jobs: int | None) -> Iterator[Any]:
        """Yield features of consecutive images, csr_arrays (images of a batch, n_columns), in order."""
        return map_threads(self.features_of_batch, _batches(iter(named)), n_jobs)

    def transform(self, named: Sequence[NamedImage], n_jobs: int | None, show: bool = False) -> Any:
        """All features as one csr_array (n_images, n_columns), held once: peak memory is the output and one batch."""
        stack = GrowingCSR(len(named), self.n_columns)
        n_batches = -(-len(named) // IMAGES_PER_BATCH)
        for block in track(self.iter_features(named, n_jobs), n_batches, "coding images", show):
            stack.append(block)
        return stack.finish()


def _batches(named: Iterator[NamedImage]) -> Iterator[list[NamedImage]]:
    while batch := list(islice(named, IMAGES_PER_BATCH)):
        yield batch

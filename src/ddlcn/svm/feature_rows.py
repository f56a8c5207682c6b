"""Features of training images as the SVM asks for them: held in memory, or computed again whenever they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

# A value in single precision and its column.
BYTES_PER_NONZERO = 8


class FeatureRows(Protocol):
    """Features of n images."""

    @property
    def n_images(self) -> int: ...

    @property
    def n_columns(self) -> int: ...

    def take(self, rows: slice) -> Any:
        """The features of some images: csr_array (rows, n_columns)."""

    def take_all(self, max_bytes: int | None) -> Any | None:
        """The features of all images, or None if they need more memory than that."""


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
    labels: NDArray[Any]

    @property
    def n_images(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.features.shape[1])

    @property
    def nbytes(self) -> int:
        return BYTES_PER_NONZERO * int(self.features.nnz)

    def take(self, rows: slice) -> Any:
        return self.features[rows]

    def take_all(self, max_bytes: int | None) -> Any | None:
        return self.features  # they are in memory already

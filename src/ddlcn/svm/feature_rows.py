"""Features of training images as the SVM asks for them: held in memory, kept on disk, or computed again."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ddlcn.utils.sparse_rows import make_csr

# A value in single precision and its column.
BYTES_PER_NONZERO = 8
# Bytes of the disk that are left to others.
DISK_RESERVE = 2_000_000_000


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


class SpooledFeatures:
    """Features that are computed once and then read from a temporary folder, as long as the disk has room.

    Parameters
    ----------
    source : FeatureRows
        Computes them.
    """

    def __init__(self, source: FeatureRows) -> None:
        self._source = source
        self._folder = tempfile.TemporaryDirectory(prefix="ddlcn-features-")  # removed with this object

    @property
    def n_images(self) -> int:
        return self._source.n_images

    @property
    def n_columns(self) -> int:
        return self._source.n_columns

    def take(self, rows: slice) -> Any:
        """The features of some images; the same images another time are read, not computed."""
        path = Path(self._folder.name) / f"{rows.start}-{rows.stop}.npz"
        if path.exists():
            with np.load(path) as kept:
                return make_csr(kept["data"], kept["indices"], kept["indptr"], tuple(kept["shape"].tolist()))
        features = self._source.take(rows)
        needed = BYTES_PER_NONZERO * int(features.nnz)
        if shutil.disk_usage(self._folder.name).free > needed + DISK_RESERVE:
            parts = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
            try:
                np.savez(path, **parts, shape=np.array(features.shape))
            except OSError:  # others filled the disk meanwhile
                path.unlink(missing_ok=True)
        return features

    def take_all(self, max_bytes: int | None) -> Any | None:
        return self._source.take_all(max_bytes)

"""Whole images as vectors of a network: "cnn", the packaged network's mean response; or precomputed, from a file.

The accuracy of a linear or Gaussian SVM on these is the reference for codes of the same network's map.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize

from ddlcn.descriptors import ConvMap
from ddlcn.images import name_images
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]


class NetworkMeans(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The mean response of a pretrained network, as a vector of unit norm.

    Parameters
    ----------
    layer : str
        "pooled": the network's own last pooling (1,280 numbers of the packaged one); else the mean over the positions
        of that layer's map, such as "block15".
    sides : tuple of int
        Sizes that the image is stretched to; the mean is over all positions of all sizes.
    root : bool
        Whether to take signed square roots first, which balances strong and weak responses.
    network : str or path
    n_jobs : int, optional
    """

    def __init__(
        self,
        layer: str = "pooled",
        sides: tuple[int, ...] = (224,),
        root: bool = True,
        network: Any = "efficientnet-lite0",
        n_jobs: int | None = None,
    ) -> None:
        self.layer = layer
        self.sides = sides
        self.root = root
        self.network = network
        self.n_jobs = n_jobs

    def fit(self, images: Any = None, y: Any = None) -> NetworkMeans:
        """Nothing to learn."""
        return self

    def transform(self, images: Any) -> Array:
        """Vectors (n, channels)."""
        layer = None if self.layer == "pooled" else self.layer
        maps = ConvMap(self.network, layer, self.sides, n_jobs=1)

        def embed(item: tuple[str, Any]) -> Array:
            mean, whole = maps.average(item[1], name=item[0])
            return whole if layer is None else mean

        rows = np.stack(list(map_threads(embed, name_images(images), self.n_jobs))).astype(np.float64)
        return np.asarray(normalize(np.sign(rows) * np.sqrt(np.abs(rows)) if self.root else rows))


class StoredVectors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Precomputed vectors (CLIP, DINO, ...), by the names of the image files.

    Parameters
    ----------
    file : path
        An .npz with arrays `names` (n,) and `vectors` (n, m), or a .csv whose rows are a name and m numbers. A name is
        the path of an image, or its last parts, such as "cats/1.jpg".
    """

    def __init__(self, file: Any, n_jobs: int | None = None) -> None:
        self.file = file
        self.n_jobs = n_jobs

    def fit(self, images: Any = None, y: Any = None) -> StoredVectors:
        """Read the file."""
        self.vectors_, self.rows_ = read_vectors(Path(self.file))
        return self

    def transform(self, images: Any) -> Array:
        """Vectors (n, m), of unit norm."""
        return np.asarray(normalize(self.vectors_[[self._find(image) for _, image in name_images(images)]]))

    def _find(self, image: Any) -> int:
        if not isinstance(image, str | os.PathLike):
            raise ValueError(f"vectors from {self.file} go with image files, by name; got {type(image).__name__}")
        parts = Path(image).parts
        for n in range(len(parts), 0, -1):  # the whole path first, then ever fewer of its last parts
            row = self.rows_.get(parts[-n:])
            if row is not None:
                return row
        raise ValueError(f"{self.file} has no vector of {str(image)!r}")


def read_vectors(file: Path) -> tuple[Array, dict[tuple[str, ...], int]]:
    """Vectors (n, m), and the row of each by the parts of its name."""
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: give an .npz with names and vectors, or a .csv")
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                names, vectors = arrays["names"].tolist(), np.asarray(arrays["vectors"], np.float64)
        else:
            with file.open(newline="", encoding="utf-8") as lines:
                table = [row for row in csv.reader(lines) if row]
            names, vectors = [row[0] for row in table], np.array([row[1:] for row in table], np.float64)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{file} holds no vectors ({error}): an .npz needs arrays `names` and `vectors`, a .csv rows of a name "
            f"and numbers"
        ) from None
    if vectors.ndim != 2 or len(vectors) != len(names) or not vectors.size or not np.isfinite(vectors).all():
        raise ValueError(f"{file} has {len(names)} names and vectors of shape {vectors.shape}: one row of numbers each")
    return vectors, {Path(name).parts: row for row, name in enumerate(names)}

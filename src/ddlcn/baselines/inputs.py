"""Images as vectors: transformers. In: images. Out: a matrix (n, m).

"pixels"    grey values of a thumbnail, mean removed, unit norm
"random"    random faces: the picture times a random matrix, of unit norm (what the SRC and K-SVD papers use)
"eigen"     eigenfaces: principal components of the training pictures, of unit norm
"hog"       histograms of gradients (scikit-image)
"pyramid"   dense SIFT, LLC codes, the spatial pyramid, and principal components of that
"cnn"       the mean response of a pretrained network, in colour
FILE        precomputed vectors, from an .npz or a .csv: `baselines.embeddings`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import normalize

from ddlcn.baselines.components import find_components
from ddlcn.baselines.embeddings import NetworkMeans, StoredVectors
from ddlcn.baselines.pyramid import SIFTPyramid
from ddlcn.images import name_images, read_image
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_choice, check_count, seed_sequence

Array = NDArray[Any]
INPUTS = ("pixels", "random", "eigen", "hog", "pyramid", "cnn")
FILES = (".npz", ".csv")


def is_matrix(images: Any) -> bool:
    """Whether `images` is a matrix, one vector per row, and not a sequence of images."""
    if not isinstance(images, list | tuple) and (hasattr(images, "shape") or hasattr(images, "__array__")):
        return len(images.shape if hasattr(images, "shape") else np.asarray(images).shape) == 2
    if isinstance(images, list | tuple) and len(images):
        first = images[0]
        if isinstance(first, list | tuple):
            return not (len(first) and isinstance(first[0], list | tuple | np.ndarray))
        return isinstance(first, np.ndarray) and first.ndim == 1
    return False


def read_stack(images: Any, shape: tuple[int, int] | None, n_jobs: int | None = None) -> NDArray[np.float32]:
    """Pictures as grey values (n, H, W) in [0, 1], resized to `shape`; None means that of the first."""
    named = list(name_images(images))
    if shape is None:
        shape = read_image(named[0][1], name=named[0][0]).shape
    height, width = shape

    def read(item: tuple[str, Any]) -> NDArray[np.float32]:
        grey = read_image(item[1], name=item[0])
        if grey.shape == (height, width):
            return grey
        # BOX averages when reducing; BILINEAR smooths when enlarging.
        resample = Image.Resampling.BOX if grey.size > height * width else Image.Resampling.BILINEAR
        return np.asarray(Image.fromarray(grey).resize((width, height), resample))

    return np.stack(list(map_threads(read, named, n_jobs)))


class _Input(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of images; `n_jobs` threads."""

    def fit(self, images: Any, y: Any = None) -> _Input:
        return self


class Pixels(_Input):
    """Grey values of a thumbnail as a vector of unit norm.

    Parameters
    ----------
    side : int or (int, int)
        Height and width of the thumbnail; one number for both.
    centred : bool
        Whether to remove each picture's mean first.
    """

    def __init__(self, side: int | tuple[int, int] = 32, centred: bool = True, n_jobs: int | None = None) -> None:
        self.side = side
        self.centred = centred
        self.n_jobs = n_jobs

    def transform(self, images: Any) -> Array:
        height, width = self.side if isinstance(self.side, tuple) else (self.side, self.side)
        shape = (check_count("side", height), check_count("side", width))
        rows = read_stack(images, shape, self.n_jobs).reshape(-1, height * width).astype(np.float64)
        if self.centred:
            rows -= rows.mean(axis=1, keepdims=True)
        return np.asarray(normalize(rows))


class RandomFaces(_Input):
    """The picture times a matrix of normal random numbers with rows of unit norm; the product has unit norm.

    Parameters
    ----------
    n_components : int
        504 on Extended Yale B and 540 on AR, as in LC-KSVD's paper.
    """

    def __init__(self, n_components: int = 504, n_jobs: int | None = None, random_state: Any = None) -> None:
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, images: Any, y: Any = None) -> RandomFaces:
        self.image_shape_ = read_image(next(iter(name_images(images)))[1]).shape
        rng = np.random.default_rng(seed_sequence(self.random_state))
        n = check_count("n_components", self.n_components)
        self.components_ = normalize(rng.normal(size=(n, int(np.prod(self.image_shape_))))).astype(np.float32)
        return self

    def transform(self, images: Any) -> Array:
        stack = read_stack(images, self.image_shape_, self.n_jobs)
        return np.asarray(normalize((stack.reshape(len(stack), -1) @ self.components_.T).astype(np.float64)))


class Eigenfaces(_Input):
    """Principal components of the training pictures, of unit norm (no more than there are training pictures).

    Parameters
    ----------
    n_components : int
    image_shape : (H, W), optional
        Size that the pictures are resized to first; None means the shape of the first training picture.
    """

    def __init__(
        self, n_components: int = 300, image_shape: tuple[int, int] | None = None, n_jobs: int | None = None
    ) -> None:
        self.n_components = n_components
        self.image_shape = image_shape
        self.n_jobs = n_jobs

    def fit(self, images: Any, y: Any = None) -> Eigenfaces:
        stack = read_stack(images, self.image_shape, self.n_jobs)
        self.image_shape_ = stack.shape[1:]
        self.mean_, self.components_ = find_components(stack.reshape(len(stack), -1), self.n_components)
        return self

    def transform(self, images: Any) -> Array:
        stack = read_stack(images, self.image_shape_, self.n_jobs)
        rows = (stack.reshape(len(stack), -1) - self.mean_) @ self.components_.T
        return np.asarray(normalize(rows.astype(np.float64)))


class HOG(_Input):
    """Histograms of gradients of the picture, resized to `image_shape` (scikit-image; 8 px cells, blocks of 2 x 2)."""

    def __init__(self, image_shape: tuple[int, int] = (64, 64), n_jobs: int | None = None) -> None:
        self.image_shape = image_shape
        self.n_jobs = n_jobs

    def transform(self, images: Any) -> Array:
        try:
            from skimage.feature import hog
        except ImportError as error:
            raise ImportError("features='hog' needs scikit-image: pip install 'ddlcn[baselines]'") from error
        stack = read_stack(images, self.image_shape, self.n_jobs)
        return np.stack(list(map_threads(lambda picture: hog(picture).astype(np.float64), stack, self.n_jobs)))


def make_input(features: Any, /, seed: int, n_jobs: int | None = None, **arguments: Any) -> Any:
    """Make the transformer that `features` names, unfitted; a transformer is cloned.

    Parameters
    ----------
    features : str or transformer
        One of INPUTS, or the path of a file of vectors.
    seed : int
    n_jobs : int, optional
    **arguments
        Of the transformer, such as `n_components`; the descriptors of "pyramid" are its own `features`.
    """
    if not isinstance(features, str):
        if not hasattr(features, "transform"):
            raise ValueError(f"features must be one of {', '.join(INPUTS)}, or a transformer of images")
        return clone(features)
    arguments["n_jobs"] = n_jobs
    if features.endswith(FILES):
        return StoredVectors(features, **arguments)
    check_choice("features", features, INPUTS)
    if features in ("random", "pyramid"):
        arguments["random_state"] = seed
    if features == "pyramid":
        return SIFTPyramid(**arguments)
    if features == "cnn":
        return NetworkMeans(**arguments)
    transformer: Any = {"pixels": Pixels, "random": RandomFaces, "eigen": Eigenfaces, "hog": HOG}[features]
    return transformer(**arguments)

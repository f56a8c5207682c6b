"""Virtual copies: a picture slightly bent, or turned over, whenever it is read. Nothing is stored.

With few pictures per class a classifier cannot know that a digit may lean; bent copies of the training pictures tell
it. Not for photographs of things: there they do not help. Pictures from above, through a microscope, of things on a
table have no right way up: copies turned by quarters and mirrored tell that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

Array = NDArray[Any]

# Largest turn in degrees, scaling (down and across), shear, and shift as a share of the side. Every copy draws each of
# them evenly. Chosen on Omniglot's background alphabets and on training images of MNIST (docs/few_images.md).
TURN, SCALE, SHEAR, SHIFT = 20.0, 0.2, 0.2, 0.05
# Deviation of the bending, as a share of the side, of each of its waves; waves of up to this many half periods a side.
BEND, WAVES = 0.015, 3


@dataclass(frozen=True, eq=False)
class VirtualCopy:
    """One copy of an image: varied when it is read, always in the same way.

    Attributes
    ----------
    image : path, array, ...
        Of any kind that can be read.
    """

    image: Any

    def vary(self, array: Array) -> Array:
        """The copy of the decoded image (H, W) or (H, W, 3), in its dtype."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class BentCopy(VirtualCopy):
    """A copy slightly turned, scaled, sheared, shifted and bent at random.

    Attributes
    ----------
    seed : SeedSequence
    strength : float
        Part of the largest turn, scaling, shear, shift and bending.
    """

    seed: np.random.SeedSequence
    strength: float = 1.0

    def vary(self, array: Array) -> Array:
        return vary(array, np.random.default_rng(self.seed), self.strength)


@dataclass(frozen=True, eq=False)
class TurnedCopy(VirtualCopy):
    """A copy turned by quarters, or mirrored and then turned.

    Attributes
    ----------
    quarters : int
    mirrored : bool
    """

    quarters: int
    mirrored: bool = False

    def vary(self, array: Array) -> Array:
        return np.ascontiguousarray(np.rot90(array[:, ::-1] if self.mirrored else array, self.quarters))


def vary(array: Array, rng: np.random.Generator, strength: float = 1.0) -> Array:
    """Turn, scale, shear, shift and bend an image (H, W) or (H, W, channels) at random; edges are continued."""
    height, width = array.shape[:2]
    side = np.array([height, width])
    angle, shear = strength * np.deg2rad(rng.uniform(-TURN, TURN)), strength * rng.uniform(-SHEAR, SHEAR)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    scale = np.diag(1.0 + strength * rng.uniform(-SCALE, SCALE, 2))
    centre = (side - 1) / 2
    shift = strength * rng.uniform(-SHIFT, SHIFT, 2) * side
    places = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij")).reshape(2, -1)
    sources = turn @ np.array([[1.0, shear], [0.0, 1.0]]) @ scale @ (places - centre[:, None])
    bend = strength * rng.normal(0.0, BEND, (2, WAVES + 1, WAVES + 1)) * side[:, None, None]
    down, across = (np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(WAVES + 1)) / n) for n in side)
    sources += (down @ bend @ across.T).reshape(2, -1) + (centre + shift)[:, None]
    sources = sources.reshape(2, height, width)
    channels = array[..., None] if array.ndim == 2 else array
    varied = [map_coordinates(channels[..., c], sources, order=1, mode="nearest") for c in range(channels.shape[2])]
    return np.stack(varied, axis=-1).reshape(array.shape)

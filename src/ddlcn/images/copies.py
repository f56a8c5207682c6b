"""Images and their virtual copies, as one list: what a classifier with few pictures learns from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ddlcn.images.naming import NamedImage
from ddlcn.images.variation import VirtualCopy


def add_copies(items: Sequence[NamedImage], n_copies: int, seed: np.random.SeedSequence) -> list[NamedImage]:
    """Every image, followed by its copies: (1 + n_copies) n images. No image's copies depend on the others."""
    together = []
    for item, own in zip(items, seed.spawn(len(items)), strict=True):
        copies = (VirtualCopy(item.image, each) for each in own.spawn(n_copies))
        together += [item, *(NamedImage(item.name, copy) for copy in copies)]
    return together

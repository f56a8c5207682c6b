"""Images and their virtual copies, as one list: what a classifier with few pictures learns from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ddlcn.images.naming import NamedImage
from ddlcn.images.variation import BentCopy, TurnedCopy, VirtualCopy
from ddlcn.utils.validation import check_count

# In place of a number of bent copies: every image in all eight ways that a square can be laid down.
TURNED = "turned"
# (quarters, mirrored) of the seven others.
_TURNS = [(quarters, mirrored) for mirrored in (False, True) for quarters in range(4)][1:]


def count_copies(copies: Any) -> int:
    """Copies of every image; raises ValueError if the parameter is neither a number nor "turned"."""
    if isinstance(copies, str):
        if copies != TURNED:
            raise ValueError(f'copies must be a number of slightly bent copies, or "turned"; got {copies!r}')
        return len(_TURNS)
    return check_count("copies", copies, 0)


def add_copies(items: Sequence[NamedImage], copies: Any, seed: np.random.SeedSequence) -> list[NamedImage]:
    """Every image, followed by its copies: (1 + count_copies(copies)) n images. No image's depend on the others."""
    n_copies, together = count_copies(copies), []
    for item, own in zip(items, seed.spawn(len(items)), strict=True):
        made: Iterable[VirtualCopy] = (BentCopy(item.image, each) for each in own.spawn(n_copies))
        if copies == TURNED:
            made = (TurnedCopy(item.image, *turn) for turn in _TURNS)
        together += [item, *(NamedImage(item.name, copy) for copy in made)]
    return together

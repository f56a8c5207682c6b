"""What each layer of a network of the paper's form is like: numbers, pictures and the sentences that follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ddlcn.report.approximation import label_cell
from ddlcn.report.pictures import to_data_address
from ddlcn.report.results import CellResult, Grid
from ddlcn.report.writing import Spread

# A code is called very large if it is more than so many times the mean of those that are not zero.
VERY_LARGE = 10.0
# Pixels of a picture on the page for one of an averaged patch.
_ENLARGED = 3


@dataclass(frozen=True)
class LayerLine:
    """The layers of one cell, over seeds; layer 1 first.

    Attributes
    ----------
    label : str
    separability, largest_codes, mean_codes, orientations : tuples of Spread
    pictures : tuple of lists
        Of one run, layer by layer: data addresses of what its most used atoms look like; or nothing.
    seeds : str
    """

    label: str
    separability: tuple[Spread, ...]
    largest_codes: tuple[Spread, ...]
    mean_codes: tuple[Spread, ...]
    orientations: tuple[Spread, ...]
    pictures: tuple[list[str], ...]
    seeds: str

    @property
    def very_large(self) -> float:
        """How many times the mean of its layer's codes the largest code is, of the layer where that is most."""
        return max(a.mean / b.mean for a, b in zip(self.largest_codes, self.mean_codes, strict=True))

    @property
    def sentence(self) -> str:
        """In words."""
        if not self.separability:
            return f"{self.label}: not run."
        n = len(self.separability)
        largest = max(spread.mean for spread in self.largest_codes)
        return (
            f"{self.label}: separability {self.separability[0].mean:.3f} with one layer, "
            f"{self.separability[-1].mean:.3f} with {n}; the largest code is {largest:.2f}, and in one layer it is "
            f"{self.very_large:.0f} times the mean; an atom of layer 1 has {self.orientations[0].mean:.1f} "
            f"orientations in effect, one of layer {n} {self.orientations[-1].mean:.1f}."
        )


def read_layers(grid: Grid) -> list[LayerLine]:
    """One line for each cell that measures layers."""
    own = [result for result in grid.by_layer if result.cell.settings.measure == "layers"]
    several = len({result.cell.column for result in own}) > 1
    return [_read(result, several) for result in own]


def _read(result: CellResult, name_column: bool) -> LayerLine:
    rows = [row.layers for row in result.rows]

    def collect(name: str) -> tuple[Spread, ...]:
        depth = min(map(len, rows), default=0)
        spreads = [Spread.of([layers[i][name] for layers in rows]) for i in range(depth)]
        return tuple(spread for spread in spreads if spread is not None)

    pictures = tuple([_draw(pixels) for pixels in layer.get("pictures", [])] for layer in (rows[0] if rows else []))
    return LayerLine(
        label_cell(result.cell, name_column), collect("separability"), collect("largest_code"), collect("mean_code"),
        collect("orientations"), pictures if any(pictures) else (),
        f"{len(result.rows)} of {result.cell.seeds} seeds",
    )  # fmt: skip


def _draw(pixels: list[list[int]]) -> str:
    """A small grey picture as a data address."""
    from PIL import Image

    picture = Image.fromarray(np.array(pixels, np.uint8))
    side = _ENLARGED * picture.width
    return to_data_address(picture.resize((side, side), Image.Resampling.NEAREST))

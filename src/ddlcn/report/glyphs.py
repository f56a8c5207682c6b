"""Atoms of dense SIFT as pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.engines.cpu.sift import N_CELLS, N_ORIENTATIONS

Array = NDArray[Any]

# Numbers of an atom.
SIFT_WIDTH = N_CELLS * N_CELLS * N_ORIENTATIONS


def draw_atom(atom: Array, side: int = 64) -> str:
    """An atom of dense SIFT as SVG: in each of 4 x 4 cells a line along the edge of every orientation.

    Parameters
    ----------
    atom : ndarray (128,)
        Orientation runs fastest, then the cell's row, then the cell's column.
    """
    strengths = np.maximum(atom, 0.0).reshape(N_CELLS, N_CELLS, N_ORIENTATIONS)  # columns, rows, orientations
    largest = strengths.max() or 1.0
    cell = side / N_CELLS
    lines = []
    for column in range(N_CELLS):
        for row in range(N_CELLS):
            x, y = (column + 0.5) * cell, (row + 0.5) * cell
            for a in range(N_ORIENTATIONS):
                length = 0.5 * cell * strengths[column, row, a] / largest
                if length < 0.04 * cell:
                    continue
                # An edge runs across its gradient, and lies on the side that the gradient points to.
                angle = 2 * math.pi * a / N_ORIENTATIONS
                dx, dy = -math.sin(angle) * length, math.cos(angle) * length
                shift_x, shift_y = 0.12 * cell * math.cos(angle), 0.12 * cell * math.sin(angle)
                lines.append(
                    f'<line x1="{x + shift_x - dx:.1f}" y1="{y + shift_y - dy:.1f}" '
                    f'x2="{x + shift_x + dx:.1f}" y2="{y + shift_y + dy:.1f}"/>'
                )
    grid = "".join(
        f'<path d="M{i * cell:.1f} 0V{side}M0 {i * cell:.1f}H{side}" stroke="var(--line)"/>' for i in range(N_CELLS + 1)
    )
    return (
        f'<svg class="glyph" viewBox="0 0 {side} {side}" width="{side}" height="{side}" role="img" '
        f'aria-label="orientations of an atom">{grid}<g stroke="currentColor" stroke-width="1.6" '
        f'stroke-linecap="round">{"".join(lines)}</g></svg>'
    )

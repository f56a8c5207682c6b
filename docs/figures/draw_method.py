"""Draws the figures of docs/method.md: `python docs/figures/draw_method.py` writes five SVG files beside this one.

Codes, residuals and cells are computed by the package; only the five codes of the pooling figure are made up.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ddlcn import encode
from ddlcn.pooling import assign_cells

HERE = Path(__file__).parent
INK, GREY, PALE, BLUE, ORANGE, GREEN = "#1f2933", "#7b8794", "#dfe5ec", "#2563a8", "#c2570c", "#24774b"


class Drawing:
    """SVG on a white card, so that it can be read on a dark page too."""

    def __init__(self, width: int, height: int, title: str) -> None:
        heads = "".join(
            f'<marker id="{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
            for colour in (INK, GREY, BLUE, ORANGE, GREEN)
        )
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Verdana, sans-serif" role="img">',
            f"<title>{title}</title><defs>{heads}</defs>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="{PALE}"/>',
        ]

    def text(self, x, y, words, size=13, fill=INK, anchor="middle", bold=False, mono=False) -> None:
        """`_{}` and `^{}` lower and raise; lines are parted by a newline."""
        style = ' font-weight="bold"' if bold else ""
        if mono:
            style += ' font-family="DejaVu Sans Mono, monospace"'
        for number, line in enumerate(words.split("\n")):
            spans = re.sub(r"([_^])\{([^}]*)\}", lambda found: _shift(found, size), line)
            at = f'x="{x:.1f}" y="{y + number * size * 1.35:.1f}"'
            self._parts.append(
                f'<text {at} font-size="{size}" fill="{fill}" text-anchor="{anchor}"{style}>{spans}</text>'
            )

    def line(self, a, b, colour=GREY, width=1.5, dash="", arrow=False) -> None:
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        extra += f' marker-end="url(#{colour[1:]})"' if arrow else ""
        self._parts.append(
            f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{colour}" '
            f'stroke-width="{width:.2f}"{extra}/>'
        )

    def rect(self, x, y, width, height, fill="none", stroke=GREY, rx=0, line=1.5) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{rx}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="{line}"/>'
        )

    def circle(self, at, radius, fill=GREY, stroke="none", dash="") -> None:
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:.1f}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="1.5"{extra}/>'
        )

    def save(self, name: str) -> None:
        (HERE / name).write_text("\n".join([*self._parts, "</svg>\n"]))


def _shift(found: re.Match[str], size: float) -> str:
    down = size * (0.25 if found[1] == "_" else -0.35)
    # A span of no width brings the line back to its height.
    shifted = f'<tspan dy="{down:.1f}" font-size="{size * 0.72:.1f}">{found[2]}</tspan>'
    return f'{shifted}<tspan dy="{-down:.1f}">&#8203;</tspan>'


def draw_pipeline() -> None:
    drawing = Drawing(880, 316, "From an image to a decision, with the shape of every array")
    stages = [
        ("image", "(H, W)", "images/"),
        ("descriptors X", "(n, m)", "descriptors/"),
        ("codes Z", "(n, D_{1})", "coding/"),
        ("feature f", "(2 · 21 · D_{1},)", "pooling.py"),
        ("decision", "(classes,)", "svm/"),
    ]
    steps = ["describe", "code", "pool", "classify"]
    width, gap = 126, 50
    left = [25 + i * (width + gap) for i in range(len(stages))]
    for x, (name, shape, place) in zip(left, stages, strict=True):
        drawing.rect(x, 52, width, 58, fill="#eef4fb", stroke=BLUE, rx=6)
        drawing.text(x + width / 2, 76, name, 14, bold=True)
        drawing.text(x + width / 2, 97, shape, 13)
        drawing.text(x + width / 2, 36, place, 12, GREY, mono=True)
    for x, step in zip(left, steps, strict=False):
        drawing.line((x + width + 3, 81), (x + width + gap - 3, 81), INK, arrow=True)
        drawing.text(x + width + gap / 2, 128, step, 12)
    below = [
        (left[1], "layer 1 dictionary", "(D_{1}, m)", "q atoms for each class"),
        (left[2], "layers 2, 3, …", "(D_{l}, m)", "on the atoms below"),
        (left[3], "path weights", "P, N: (D_{1},) each", "one number per atom"),
    ]
    for x, name, shape, note in below:
        drawing.rect(x - 18, 190, width + 36, 76, fill="#fdf3ea", stroke=ORANGE, rx=6)
        drawing.text(x + width / 2, 211, name, 13, bold=True)
        drawing.text(x + width / 2, 231, shape, 13)
        drawing.text(x + width / 2, 253, note, 11.5, GREY)
    drawing.line((left[1] + 63, 114), (left[1] + 63, 187), GREY, dash="5 4", arrow=True)
    drawing.text(left[1] + 56, 154, "learn", 12, GREY, anchor="end")
    drawing.line((left[1] + 120, 187), (left[2] + 40, 114), ORANGE, arrow=True)
    drawing.line((left[1] + width + 20, 228), (left[2] - 20, 228), ORANGE, arrow=True)
    drawing.line((left[2] + width + 20, 228), (left[3] - 20, 228), ORANGE, arrow=True)
    drawing.line((left[3] + 63, 187), (left[3] + 63, 114), ORANGE, arrow=True)
    drawing.text(left[1] + 63, 290, "dictionaries/", 12, GREY, mono=True)
    drawing.text(left[2] + 63, 290, "dictionaries/", 12, GREY, mono=True)
    drawing.text(left[3] + 63, 290, "coding/augmented.py", 12, GREY, mono=True)
    drawing.save("method-pipeline.svg")


def draw_coding() -> None:
    atoms = np.array(
        [[1.0, 3.3], [2.5, 4.3], [3.6, 3.2], [2.2, 2.1], [4.4, 4.6], [5.6, 3.1], [5.3, 1.0], [0.7, 1.0], [6.6, 4.6],
         [7.2, 1.6], [3.1, 0.25]]
    )  # fmt: skip
    x = np.array([[2.95, 3.05]])
    k = 5
    z = encode(x, atoms, beta=0.45, n_neighbors=k).codes.toarray()[0]
    near = np.argsort(np.linalg.norm(atoms - x, axis=1))[:k]
    drawing = Drawing(720, 330, "A descriptor, its five nearest atoms, and the codes of those that the optimum uses")

    def place(point):
        return 20 + 55 * point[0], 320 - 55 * point[1]

    used = [j for j in near if z[j] != 0.0]
    for a in used:
        for b in used:
            if a < b:
                drawing.line(place(atoms[a]), place(atoms[b]), PALE, 1.2)
    drawing.circle(place(x[0]), 55 * np.linalg.norm(atoms[near[-1]] - x[0]) + 10, "none", GREY, "4 4")
    for j in range(len(atoms)):
        at = place(atoms[j])
        if z[j] != 0.0:
            drawing.line(place(x[0]), at, BLUE if z[j] > 0 else ORANGE, 1.0 + 7.0 * abs(z[j]))
        drawing.circle(at, 6, BLUE if z[j] > 0 else ORANGE if z[j] < 0 else "#ffffff" if j in near else PALE,
                       INK if j in near else GREY)  # fmt: skip
    for rank, j in enumerate(near, start=1):
        at = place(atoms[j])
        drawing.text(at[0] - 12, at[1] - 10, f"v_{{{rank}}}", 14, bold=True, anchor="end")
    drawing.circle(place(x[0]), 5, INK)
    drawing.text(place(x[0])[0] - 9, place(x[0])[1] + 4, "x", 15, bold=True, anchor="end")
    found = place(z @ atoms)
    drawing.line((found[0] - 5, found[1] - 5), (found[0] + 5, found[1] + 5), GREEN, 2.5)
    drawing.line((found[0] - 5, found[1] + 5), (found[0] + 5, found[1] - 5), GREEN, 2.5)
    left = 520
    drawing.text(left, 62, "code over the 5 nearest", 13, bold=True, anchor="start")
    for rank, j in enumerate(near, start=1):
        note = "" if z[j] != 0.0 else "  (near, not used)"
        colour = BLUE if z[j] > 0 else ORANGE if z[j] < 0 else GREY
        drawing.text(left, 66 + 24 * rank, f"z_{{{rank}}} = {z[j]:.2f}{note}".replace("-", "−"), 13, colour, "start")
    drawing.text(left, 66 + 24 * (k + 1) + 4, f"sum = {z.sum():.2f}", 13, INK, "start", bold=True)
    drawing.line((left, 250), (left + 10, 260), GREEN, 2.5)
    drawing.line((left, 260), (left + 10, 250), GREEN, 2.5)
    drawing.text(left + 18, 260, "z V, the approximation", 13, INK, "start")
    drawing.circle((left + 5, 284), 6, PALE, GREY)
    drawing.text(left + 18, 289, "atoms too far away", 13, INK, "start")
    drawing.save("method-coding.svg")


def draw_max_pooling() -> None:
    z = np.array([0.2, 0.9, -0.3, 0.5, -0.7])
    panels = [
        ("z_{ij}, the codes of atom j", 1.0, "M_{j}", "max = M_{j} = 0.90"),
        ("0.6 · z_{ij}", 0.6, "", "max = 0.6 · M_{j} = 0.54"),
        ("−0.5 · z_{ij}", -0.5, "", "max = 0.5 · m_{j} = 0.35"),
    ]
    drawing = Drawing(760, 286, "Max pooling commutes with a fixed factor; a negative factor picks the smallest code")
    for number, (title, factor, _, note) in enumerate(panels):
        left, zero = 24 + number * 245, 150
        drawing.text(left + 105, 34, title, 14, bold=True)
        drawing.line((left, zero), (left + 222, zero), GREY, 1.2)
        winner = int(np.argmax(factor * z))
        for i, value in enumerate(factor * z):
            height = 85 * abs(value)
            top = zero - height if value > 0 else zero
            colour = (BLUE if factor > 0 else ORANGE) if i == winner else PALE
            drawing.rect(left + 12 + i * 41, top, 30, height, colour, colour if i == winner else GREY, line=1)
            drawing.text(left + 27 + i * 41, zero + 82, f"i = {i + 1}", 11, GREY)
        drawing.text(left + 111, zero + 112, note, 13, BLUE if factor > 0 else ORANGE, bold=True)
    drawing.text(619, 56, "m_{j} = max −z_{ij} = 0.70", 11.5, GREY)
    drawing.save("method-max-pooling.svg")


def draw_residual() -> None:
    atoms = np.array([[0.5, 1.1], [3.2, 2.3], [5.2, 0.6], [0.8, 4.2], [5.4, 4.2]])
    x = np.array([[2.3, 2.9]])
    z = encode(x, atoms, beta=0.1, n_neighbors=2).codes.toarray()[0]
    angles = np.deg2rad(np.arange(0, 360, 60) + 12)
    U = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    drawing = Drawing(
        760, 320, "Residual depth: every atom in the code leaves a residual, and layer 2 codes its direction"
    )

    def place(point):
        return 24 + 60 * point[0], 266 - 46 * point[1]

    def place_unit(point):
        return 560 + 88 * point[0], 166 - 88 * point[1]

    drawing.text(190, 30, "layer 1: the atoms in the code of x", 14, bold=True)
    drawing.text(560, 30, "layer 2: directions over U", 14, bold=True)
    drawing.circle(place_unit((0, 0)), 88, "none", PALE)
    for u in U:
        drawing.circle(place_unit(u), 6, PALE, GREY)
    used = np.flatnonzero(z)
    for j in range(len(atoms)):
        drawing.circle(place(atoms[j]), 6, INK if j in used else PALE, INK if j in used else GREY)
    names = []
    for rank, (j, colour) in enumerate(zip(used, (BLUE, ORANGE), strict=True), start=1):
        r = x[0] - atoms[j]
        length = np.linalg.norm(r)
        gamma = encode(r[None] / length, U, beta=0.05, n_neighbors=2).codes.toarray()[0]
        coded = gamma @ U
        scale = max(float(r @ coded), 0.0) / float(coded @ coded)
        left_over = r - scale * coded
        start, end = np.array(place(atoms[j])), np.array(place(x[0]))
        drawing.line(start, start + (end - start) * (1 - 9 / np.linalg.norm(end - start)), colour, 2.2, arrow=True)
        at = place(atoms[j])
        drawing.text(at[0], at[1] + 24, f"v_{{{rank}}}", 14, bold=True)
        drawing.line(place_unit((0, 0)), place_unit(r / length), colour, 2.2, arrow=True)
        out = place_unit(1.4 * r / length)
        drawing.text(out[0], out[1] + 5, f"r_{{{rank}}} / ‖r_{{{rank}}}‖", 12.5, colour)
        names.append((rank, colour, z[j], length, np.linalg.norm(left_over)))
    drawing.circle(place(x[0]), 5, INK)
    drawing.text(place(x[0])[0] - 4, place(x[0])[1] - 12, "x", 15, bold=True)
    for rank, colour, code, length, rest in names:
        words = f"z_{{{rank}}} = {code:.2f},  ‖r_{{{rank}}}‖ = {length:.2f},  after layer 2: {rest:.2f}"
        drawing.text(24, 264 + 20 * rank, words, 12.5, colour, "start")
    drawing.text(560, 304, "what is left of r goes to layer 3", 12.5, GREY)
    drawing.save("method-residual.svg")


def draw_pyramid() -> None:
    pyramid, size, step = (1, 2, 4), 16, 11
    height, width = 104, 128
    tops, lefts = range((height - size) % step // 2, height - size + 1, step), range(0, width - size + 1, step)
    xy = np.array([(left + (size - 1) / 2, top + (size - 1) / 2) for top in tops for left in lefts])
    marked = int(np.argmin(np.linalg.norm(xy - (44, 64), axis=1)))
    cells = assign_cells(xy, (height, width), pyramid)
    drawing = Drawing(760, 262, "The three levels of the pyramid, and the three cells of one descriptor")
    scale, first = 1.75, 0
    for number, level in enumerate(pyramid):
        left, top = 22 + number * 247, 46
        drawing.text(left + width * scale / 2, 30, f"{level} × {level}", 14, bold=True)
        own = int(cells[marked, number]) - first
        wide, high = width * scale / level, height * scale / level
        for cell in range(level * level):
            row, column = divmod(cell, level)
            fill = "#cfe2f6" if cell == own else "#ffffff"
            drawing.rect(left + column * wide, top + row * high, wide, high, fill, GREY, line=1.2)
        for i, (x, y) in enumerate(xy):
            at = (left + (x + 0.5) * scale, top + (y + 0.5) * scale)
            drawing.circle(at, 5.5 if i == marked else 1.9, ORANGE if i == marked else "#a9b4c0")
        for cell in range(level * level):
            row, column = divmod(cell, level)
            aside = 14 if level == 4 and cell == own else 0  # not under the mark
            at = (left + (column + 0.5) * wide + aside, top + (row + 0.5) * high + 4)
            drawing.text(*at, str(first + cell), 12, BLUE, bold=True)
        first += level * level
    drawing.text(380, 246, "The marked descriptor counts in three cells, one on each level.", 12.5)
    drawing.save("method-pyramid.svg")


if __name__ == "__main__":
    for draw in (draw_pipeline, draw_coding, draw_max_pooling, draw_residual, draw_pyramid):
        draw()

"""Atoms are drawn as they are."""

from __future__ import annotations

import re

import numpy as np

from ddlcn import DenseSIFT
from ddlcn.report.glyphs import SIFT_WIDTH, draw_atom


def test_an_upright_edge_is_drawn_upright():
    picture = np.zeros((16, 16))
    picture[:, 8:] = 1.0
    atom = DenseSIFT(16, 6).transform([picture])[0].values[0]
    assert len(atom) == SIFT_WIDTH
    lines = re.findall(r'x1="([\d.-]+)" y1="([\d.-]+)" x2="([\d.-]+)" y2="([\d.-]+)"', draw_atom(atom, 64))
    x1, y1, x2, y2 = np.array(lines, float).T
    longest = np.argmax(np.hypot(x2 - x1, y2 - y1))
    assert abs(x2 - x1)[longest] < 0.2
    assert abs(y2 - y1)[longest] > 8
    assert 16 < x1[longest] < 48  # in the middle two of four columns

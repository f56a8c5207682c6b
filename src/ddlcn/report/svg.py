"""Figures as SVG text to embed in an HTML page.

Ink is the page's text colour, so a figure fits a light and a dark page. Equal figures give equal bytes.
"""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Placeholders that become CSS when the figure is written: matplotlib accepts only its own colours.
INK, FAINT = "#123456", "#654321"
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a class may be called "$5"
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 11.5,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.markersize": 6.0,
}
_P = ParamSpec("_P")


def in_style(draw: Callable[_P, str]) -> Callable[_P, str]:
    """Decorator: run a drawing function with our style; the user's is restored afterwards."""

    @functools.wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> str:
        import matplotlib as mpl

        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            # The browser chooses the font: glyphs that ours lacks do not matter.
            warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
            return draw(*args, **kwargs)

    return drawn


def start(n: int, width: float, height: float, n_columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of n panels in `n_columns` columns (None: one row)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    n_columns = n_columns or n
    return figure, [figure.add_subplot(-(-n // n_columns), n_columns, i + 1) for i in range(n)]


def finish(figure: Figure, name: str, label: str) -> str:
    """The figure as SVG text, with ids that are unique on the page, and colours and fonts of the page."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = text.replace(INK, "currentColor").replace(FAINT, "var(--faint)")
    text = text.replace("'DejaVu Sans'", "var(--sans)")
    size = re.search(r'<svg[^>]*?\bwidth="([\d.]+)pt"', text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    safe = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    width = "" if size is None else f' style="max-width: {float(size.group(1)) * 4 / 3:.0f}px"'
    return text.replace("<svg", f'<svg role="img" aria-label="{safe}"{width}', 1).strip()

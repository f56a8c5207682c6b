"""HTML from templates: one environment for all pages, so that they escape and look alike."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from typing import Any

# The package with the base template and the style of every page.
COMMON = "ddlcn.report"


def check_pages(figures: bool = False) -> None:
    """Raise ImportError now, not after long work, if what pages need is missing; with `figures` matplotlib, too."""
    missing = [name for name in ("jinja2", *(["matplotlib"] if figures else [])) if find_spec(name) is None]
    if missing:
        raise ImportError(f"HTML pages need {' and '.join(missing)}: pip install 'ddlcn[report]'")


def mark_safe(text: str) -> Any:
    """Text that pages take as it is, unescaped: our own SVG and CSS."""
    check_pages()
    from markupsafe import Markup  # jinja2's own

    return Markup(text)


def render(package: str, template: str, **values: Any) -> str:
    """Render a template of a package's `templates` folder with the common style; all values are escaped.

    Raises
    ------
    ImportError
        If jinja2 is missing; the message explains how to install it.
    """
    check_pages()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p, "templates") for p in (package, COMMON)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = mark_safe(resources.files(COMMON).joinpath("templates", "style.css").read_text(encoding="utf-8"))
    return environment.get_template(template).render(style=style, **values)

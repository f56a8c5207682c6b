"""HTML from templates: one environment for all pages, so that they escape, fail and look alike."""

from __future__ import annotations

from importlib import resources
from typing import Any

# Where the frame and the style of every page lie.
COMMON = "ddlcn.report"


def render(package: str, template: str, **values: Any) -> str:
    """A page from a template in a package's `templates` folder, with the common style inside; everything is escaped.

    Raises
    ------
    ImportError
        If jinja2 is missing; the message says how to get it.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("HTML pages need jinja2: pip install 'ddlcn[report]'") from error

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p, "templates") for p in (package, COMMON)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    # Ours, and CSS is not HTML: nothing to escape.
    style = Markup(resources.files(COMMON).joinpath("templates", "style.css").read_text(encoding="utf-8"))
    return environment.get_template(template).render(style=style, **values)

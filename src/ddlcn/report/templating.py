"""HTML from templates: one environment for all pages, so that they escape and look alike."""

from __future__ import annotations

from importlib import resources
from typing import Any

# The package with the base template and the style of every page.
COMMON = "ddlcn.report"


def render(package: str, template: str, **values: Any) -> str:
    """Render a template of a package's `templates` folder with the common style; all values are escaped.

    Raises
    ------
    ImportError
        If jinja2 is missing; the message explains how to install it.
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
    # Our own CSS: nothing to escape.
    style = Markup(resources.files(COMMON).joinpath("templates", "style.css").read_text(encoding="utf-8"))
    return environment.get_template(template).render(style=style, **values)

"""Rows of results in, one HTML page or one markdown page out. Nothing is run here, and no number is typed by hand.

Everything that is drawn or counted is imported when it is asked for: `import ddlcn.report` costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddlcn.experiments.catalogue import Experiment
    from ddlcn.experiments.store import Row

__all__ = ["write_report", "write_summary"]


def write_report(rows: Sequence[Row], experiments: Sequence[Experiment], path: str | os.PathLike[str]) -> None:
    """Write the report: one HTML file that needs nothing else, no network, no other file.

    Parameters
    ----------
    rows : sequence of Row
        Finished runs, as `read_rows` gives them. Quick ones are left out unless there are no others.
    experiments : sequence of Experiment
        The tables and figures to show, in this order.
    path : path
        The file to write; it is replaced in one step.

    Raises
    ------
    ValueError
        If there is no row, or no experiment with a cell.
    ImportError
        If matplotlib or jinja2 is missing; the message says how to get them.
    """
    from ddlcn.report.page import render_page
    from ddlcn.report.writing import replace_file

    replace_file(path, render_page(rows, experiments))


def write_summary(rows: Sequence[Row], experiments: Sequence[Experiment], path: str | os.PathLike[str]) -> None:
    """Write the same numbers as compact markdown, without pictures; needs no extra package.

    Parameters and errors as of `write_report`.
    """
    from ddlcn.report.summary import render_summary
    from ddlcn.report.writing import replace_file

    replace_file(path, render_summary(rows, experiments))

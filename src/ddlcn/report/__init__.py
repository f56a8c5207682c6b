"""Reports. In: rows of results. Out: one HTML page or one markdown page. Nothing is run here.

Everything is imported on demand: `import ddlcn.report` costs nothing.
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
    """Write the report: one self-contained HTML file.

    Parameters
    ----------
    rows : sequence of Row
        Finished runs, from `read_rows`. Quick ones are left out unless there are no others.
    experiments : sequence of Experiment
        The tables and figures to show, in this order.
    path : path
        The file to write; it is replaced in one step.

    Raises
    ------
    ValueError
        If there is no row, or no experiment with a cell.
    ImportError
        If matplotlib or jinja2 is missing; the message explains how to install them.
    """
    from ddlcn.report.page import render_page
    from ddlcn.utils.files import write_whole

    write_whole(path, render_page(rows, experiments), make_folder=True)


def write_summary(rows: Sequence[Row], experiments: Sequence[Experiment], path: str | os.PathLike[str]) -> None:
    """Write the same numbers as compact markdown, without pictures; needs no extra package.

    Parameters and errors as for `write_report`.
    """
    from ddlcn.report.summary import render_summary
    from ddlcn.utils.files import write_whole

    write_whole(path, render_summary(rows, experiments), make_folder=True)

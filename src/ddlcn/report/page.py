"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ddlcn.experiments.catalogue import Experiment
from ddlcn.experiments.store import Row
from ddlcn.report import contents as words
from ddlcn.report.contents import Contents, Section, gather
from ddlcn.report.contest import conclude
from ddlcn.report.glyphs import SIFT_WIDTH, draw_atom
from ddlcn.report.joint import JointLine
from ddlcn.report.pictures import find_pictures
from ddlcn.report.published import INCLUDED
from ddlcn.report.templating import check_pages, mark_safe, render
from ddlcn.report.writing import count, describe, show_difference, show_number

# A table of times longer than this is collapsed.
_LONG = 12


def render_page(rows: Sequence[Row], experiments: Sequence[Experiment]) -> str:
    """The whole page, CSS and figures inside."""
    check_pages(figures=True)
    contents = gather(rows, experiments)
    return render(
        "ddlcn.report",
        "page.html",
        count=count,
        describe=describe,
        show_difference=show_difference,
        show_number=show_number,
        long=_LONG,
        contents=contents,
        words=words,
        included=INCLUDED,
        menu=_list_menu(contents),
        sections=[_section(i, section) for i, section in enumerate(contents.sections, start=1)],
        confusions=_confusions(contents),
        glance=mark_safe(_draw_glance(contents)),
    )


def _list_menu(contents: Contents) -> list[tuple[str, str]]:
    menu = [(f"experiment-{i}", section.grid.experiment.title) for i, section in enumerate(contents.sections, start=1)]
    menu += [("claims", words.CLAIMS_TITLE), ("paper", words.PAPER_TITLE)] if contents.paper else []
    menu += [("leak", "The leak"), ("depth", "Depth, and what the mathematics predicts")]
    if contents.confusions:
        menu.append(("classes", "Best and worst classes"))
    return [*menu, ("time", "Time"), ("origin", "Where and when")]


def _draw_glance(contents: Contents) -> str:
    from ddlcn.report.figures import draw_differences

    return (
        draw_differences([section.grid for section in contents.sections], "glance") if contents.counts.published else ""
    )


def _section(number: int, section: Section) -> dict[str, Any]:
    from ddlcn.report.figures import draw_contest, draw_costs, draw_curve, draw_epochs, draw_errors

    figures = []
    if any(panel.standings for panel in section.panels):
        figures.append(mark_safe(draw_contest(section.panels, f"contest{number}")))
    if section.grid.experiment.kind == "curve" and section.grid.results:
        figures.append(mark_safe(draw_curve(section.grid, f"curve{number}")))
        if section.grid.has_others and any(result.ms_per_image for result in section.grid.results):
            figures.append(mark_safe(draw_costs(section.grid, f"costs{number}")))
    if any(line.errors for line in section.errors):
        figures.append(mark_safe(draw_errors(section.errors, f"errors{number}")))
    if any(line.n_trained for line in section.joint):
        figures.append(mark_safe(draw_epochs(section.joint, f"epochs{number}")))
    return {
        "id": f"experiment-{number}",
        "grid": section.grid,
        "figures": figures,
        "errors": section.errors,
        "deepest": max((len(line.errors) for line in section.errors), default=0),
        "layers": section.layers,
        "times": section.times,
        "joint": section.joint,
        "atoms": [_draw_atoms(line) for line in section.joint if line.layers],
        "comparisons": section.comparisons,
        "panels": section.panels,
        "sentences": conclude(section.panels),
    }


def _draw_atoms(line: JointLine) -> dict[str, Any]:
    """Atoms before and after joint training, layer by layer; those of other descriptors than SIFT have no picture."""
    layers = [
        [
            (mark_safe(draw_atom(np.array(a))), mark_safe(draw_atom(np.array(b))))
            for a, b in zip(before, after, strict=True)
        ]
        for before, after in line.layers
        if before and len(before[0]) == SIFT_WIDTH
    ]
    return {"label": line.label, "layers": layers}


def _confusions(contents: Contents) -> list[dict[str, Any]]:
    from ddlcn.report.figures import draw_confusion

    return [
        {
            "confusion": confusion,
            "figure": mark_safe(draw_confusion(confusion, f"confusion{i}")),
            "pictures": find_pictures(confusion),
        }
        for i, confusion in enumerate(contents.confusions, start=1)
    ]

"""What `ddlcn check` found, as a page: pictures in doubt, to be picked one by one."""

from __future__ import annotations

from ddlcn.report.pictures import to_data_address
from ddlcn.report.templating import mark_safe, render
from ddlcn.web.drawing import draw_picture
from ddlcn.workflows.check import Check

# Pictures shown, and their side.
N_SHOWN, SIDE = 200, 160


def render_check(found: Check, title: str) -> str:
    """Render the page. A name moves to the list below when its picture is ticked; no script does it."""
    shown = [
        {
            "name": str(found.data.paths[doubt.index]),
            "label": str(found.data.labels[doubt.index]),
            "looks_like": str(doubt.looks_like),
            "probability": doubt.probability,
            "own_probability": doubt.own_probability,
            "picture": to_data_address(draw_picture(found.data.paths[doubt.index], SIDE)),
        }
        for doubt in found.doubts[:N_SHOWN]
    ]
    rules = "".join(f"body:has(#tick-{i}:checked) #name-{i} {{ display: list-item; }}\n" for i in range(len(shown)))
    return render("ddlcn.web", "check.html", found=found, title=title, shown=shown, rules=mark_safe(rules))

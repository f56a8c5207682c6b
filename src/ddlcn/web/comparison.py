"""Learning curves of several methods on a user's pictures, as a page."""

from __future__ import annotations

from ddlcn.report.figures import choose_look
from ddlcn.report.svg import finish, in_style, start
from ddlcn.report.templating import check_pages, mark_safe, render
from ddlcn.workflows.compare import Point, conclude


def render_comparison(curves: dict[str, list[Point]], title: str, n_images: int, n_classes: int, n_draws: int) -> str:
    """Render the page."""
    check_pages(figures=True)
    return render(
        "ddlcn.web",
        "comparison.html",
        curves=curves,
        sentences=conclude(curves),
        figure=mark_safe(_draw_curves(curves)),
        title=title,
        n_images=n_images,
        n_classes=n_classes,
        n_draws=n_draws,
    )


@in_style
def _draw_curves(curves: dict[str, list[Point]]) -> str:
    figure, (axis,) = start(1, width=8.2, height=4.4)
    counts = sorted({point.n_per_class for points in curves.values() for point in points})
    for i, (method, points) in enumerate(curves.items()):
        x = [point.n_per_class for point in points]
        y = [100 * point.accuracy for point in points]
        spread = [[100 * (p.accuracy - p.low) for p in points], [100 * (p.high - p.accuracy) for p in points]]
        axis.errorbar(x, y, yerr=spread, capsize=3, elinewidth=1.2, label=method, **choose_look(i))
    axis.set_xscale("log")
    axis.set_xticks(counts, [str(n) for n in counts])
    axis.minorticks_off()
    axis.set_xlabel("training images per class")
    axis.set_ylabel("recognised, %")
    axis.legend(loc="best", fontsize=9.5)
    return finish(figure, "curves", "Learning curves. The numbers are in the table.")

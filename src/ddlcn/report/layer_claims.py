"""Tests of what the paper claims of its layers: approximation, what atoms hold, separability of features."""

from __future__ import annotations

from ddlcn.report.approximation import read_errors
from ddlcn.report.evidence import Evidence, Finding, judge
from ddlcn.report.layers import VERY_LARGE, LayerLine, read_layers
from ddlcn.report.writing import count


def find_approximation(e: Evidence) -> Finding | None:
    """Whether two layers approximate a descriptor better than one."""
    if "approximation" not in e.grids:
        return None
    grid = e.grids["approximation"]
    found = [each for each in zip(read_errors(grid), grid.by_layer, strict=True) if len(each[0].errors) > 1]
    own = [line for line, result in found if result.cell.settings.depth == "augment"]
    if not own:
        return None
    falls = sum(line.errors[1].mean < line.errors[0].mean for line in own)
    sentence = (
        f"In the paper's form the relative error falls from layer 1 to layer 2 in {falls} of "
        f"{count(len(own), 'data set')}. Residual depth, which is ours, is shown beside it."
    )
    lines = tuple((line.label, *(f"{error.mean:.3f}" for error in line.errors)) for line, _ in found)
    return _level(Finding(judge(falls, len(own)), sentence, ("",), lines), "layer 1")


def find_hierarchy(e: Evidence) -> Finding | None:
    """Whether deeper atoms hold more complex structures."""
    found = _read_layers(e)
    if not found:
        return None
    rises = [line.orientations[-1].mean > line.orientations[0].mean for line in found]
    sentence = (
        f"Orientations that an atom has in effect (1 is a single straight edge) rise in {sum(rises)} of {len(rises)}. "
        "A deeper atom describes a patch of the same size, for it is learned from atoms. Pictures of digits' atoms are "
        "in the section."
    )
    lines = tuple((line.label, *(f"{each.mean:.2f}" for each in line.orientations)) for line in found)
    return _level(Finding(judge(sum(rises), len(rises)), sentence, ("",), lines), "layer 1")


def find_separability(e: Evidence) -> Finding | None:
    """Whether classes become easier to separate, and no code is very large."""
    found = _read_layers(e)
    if not found:
        return None
    gains = [line.separability[-1].mean > line.separability[0].mean for line in found]
    calm = [line.very_large <= VERY_LARGE for line in found]
    most = max(line.very_large for line in found)
    sentence = (
        "Scatter of the classes' means, as a share of the scatter within classes, by number of layers. The largest "
        f"code of a layer is up to {most:.0f} times the mean of the layer's codes; more than {VERY_LARGE:.0f} times is "
        "called very large here."
    )
    lines = tuple((line.label, *(f"{each.mean:.3f}" for each in line.separability)) for line in found)
    verdict = judge(sum(gains) + sum(calm), len(gains) + len(calm))
    return _level(Finding(verdict, sentence, ("",), lines), "1 layer")


def _read_layers(e: Evidence) -> list[LayerLine]:
    lines = read_layers(e.grids["layers"]) if "layers" in e.grids else []
    return [line for line in lines if len(line.separability) > 1]


def _level(finding: Finding, first: str) -> Finding:
    """With a column for every layer, the first called `first`, and lines of one length."""
    width = max(map(len, finding.lines))
    head = ("", first, *map(str, range(2, width)))
    return finding._replace(head=head, lines=tuple(line + ("",) * (width - len(line)) for line in finding.lines))

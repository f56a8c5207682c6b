"""All contents of a report, computed once; the page and the summary only lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddlcn.experiments.catalogue import Experiment
from ddlcn.experiments.store import Row
from ddlcn.report.approximation import ErrorLine, read_errors
from ddlcn.report.claims import Claim, read_claims
from ddlcn.report.classes import Confusion, read_confusions
from ddlcn.report.comparisons import (
    Comparison,
    DepthLine,
    compare_depths,
    compare_named,
    compare_rules,
    summarise_depths,
)
from ddlcn.report.contest import Panel, read_panels
from ddlcn.report.joint import JointLine, read_joint
from ddlcn.report.layers import LayerLine, read_layers
from ddlcn.report.published import PaperTable, count_numbers, describe_metrics, read_tables
from ddlcn.report.results import Grid, choose_experiments, choose_rows, fill_grid, group_by_settings
from ddlcn.report.timing import Origin, TimeLine, describe_times, list_data, list_origins, list_times, summarise_times
from ddlcn.report.writing import count

QUICK_BANNER = "Quick look, not the result: a small part of the data, one seed, small dictionaries."
CLAIMS_TITLE = "The paper's claims, tested"
CLAIMS_NOTE = "Verdicts and figures are computed from the runs, with our measurements on both sides of a comparison."
PAPER_TITLE = "The paper's tables, number by number"
CONTEST_NOTE = (
    "Recognised, per cent: mean over seeds ± half its 95 % interval, by training images per class. "
    "Times with the most of them: one thread, per test image, decoding excluded."
)
PREDICTION = (
    "In the paper's form a deeper code belongs to an atom of layer 1 and never sees the descriptor. Max pooling then "
    "lets every deeper entry collapse into a fixed weight of its layer-1 atom: an n-layer network is a one-layer "
    "network whose atoms are weighted differently. So the mathematics predicts no gain from depth in itself, only "
    "what a re-weighting of atoms can change."
)
TEST_NOTE = (
    "Differences are taken seed by seed, since a seed means the same split whatever the other settings. The t test is "
    "the paired one; the rank test is Wilcoxon's signed-rank test, made where 6 seeds or more differ; the exact sign "
    "test is for differences that are all one number. A difference is claimed only where every test made has p < 0.05. "
    "Seeds redraw from the same images and every pair is tested on its own, so p is, if anything, too small."
)
LEAK_NOTE = (
    "The published code draws dictionary images from all images of a class, test images included (rule: published). "
    "Clean draws them from the training images only. Runs that are equal in everything else, same seeds:"
)


@dataclass(frozen=True)
class Counts:
    """Numbers of cells of tables and points of curves: run, reached."""

    run: int
    cells: int
    partly: int  # run with fewer seeds than wanted
    reached: int
    close: int
    short: int
    bars_reached: int
    bars_waiting: int  # not run
    bars: int

    @property
    def published(self) -> int:
        return self.reached + self.close + self.short


@dataclass(frozen=True)
class Section:
    """One experiment."""

    grid: Grid
    comparisons: list[tuple[str, str, list[Comparison]]]
    errors: list[ErrorLine]
    layers: list[LayerLine]
    times: list[str]  # of cells that measure nothing else
    panels: list[Panel]  # of a contest
    joint: list[JointLine]


@dataclass(frozen=True)
class Contents:
    """The contents of a report."""

    quick: bool
    counts: Counts
    summary: str
    paper: list[PaperTable]  # its tables, number by number
    paper_summary: str
    paper_metrics: str
    claims: list[Claim]
    sections: list[Section]
    leak: list[Comparison]
    depths: list[DepthLine]
    depth_sentence: str
    confusions: list[Confusion]
    times: dict[str, list[TimeLine]]
    time_summary: list[TimeLine]
    origins: list[Origin]
    data: list[tuple[str, str]]
    n_rows: int

    @property
    def deepest(self) -> range:
        """The depths of the table of depths."""
        return range(1, max((max(line.accuracies) for line in self.depths), default=0) + 1)


def gather(rows: Sequence[Row], experiments: Sequence[Experiment]) -> Contents:
    """Compute the contents of a report."""
    chosen, quick = choose_rows(rows)
    groups = group_by_settings(chosen)
    grids = [fill_grid(experiment, groups) for experiment in choose_experiments(experiments, chosen, quick)]
    ours = {settings: group for settings, group in groups.items() if settings.method == "DDLCN"}
    depths = compare_depths(ours)
    times = list_times(ours)
    counts = _count(grids)
    paper = [] if quick else read_tables(grids)
    return Contents(
        quick,
        counts,
        _summarise(counts),
        paper,
        count_numbers(paper) if paper else "",
        describe_metrics(paper),
        read_claims(grids, paper, depths),
        [_read_section(grid) for grid in grids],
        compare_rules(ours),
        depths,
        summarise_depths(depths),
        read_confusions(grids),
        times,
        summarise_times(times),
        list_origins(chosen),
        list_data(chosen),
        len(chosen),
    )


def _read_section(grid: Grid) -> Section:
    panels = read_panels(grid) if grid.experiment.kind == "contest" else []
    return Section(
        grid, compare_named(grid), read_errors(grid), read_layers(grid), describe_times(grid), panels, read_joint(grid)
    )


def _count(grids: Sequence[Grid]) -> Counts:
    cells = [result for grid in grids for result in (*grid.results, *grid.by_layer, *grid.timed)]
    run = [result for result in cells if result.is_run]
    verdicts = [result.verdict for result in run]
    bars = [result for result in cells if result.cell.bar is not None]
    return Counts(
        len(run),
        len(cells),
        sum(len(result.rows) < result.cell.seeds for result in run),
        verdicts.count("reached"),
        verdicts.count("close"),
        verdicts.count("short"),
        sum(result.bar_verdict == "reached" for result in bars),
        sum(not result.is_run for result in bars),
        len(bars),
    )


def _summarise(counts: Counts) -> str:
    """The counts in words."""
    text = f"{counts.run} of {count(counts.cells, 'cell')} of tables and curves have been run"
    text += f", {counts.partly} of them with fewer seeds than planned. " if counts.partly else ". "
    if counts.published:
        text += (
            f"Of the {counts.published} that have a published number, {counts.reached} are at or above it, "
            f"{counts.close} short by no more than one standard deviation, {counts.short} short by more. "
        )
    else:
        text += "None of them has a published number. "
    if counts.bars:
        text += f"Of {count(counts.bars, 'bar')} that we set ourselves, reached: {counts.bars_reached}"
        text += f", not run: {counts.bars_waiting}." if counts.bars_waiting else "."
    return text.strip()

"""A test for each claim of the paper: a verdict and a sentence, computed from the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ddlcn.report.approximation import read_errors
from ddlcn.report.comparisons import LEVEL, Comparison, DepthLine, compare_named, pair, summarise_depths
from ddlcn.report.contest import read_panels
from ddlcn.report.layers import VERY_LARGE, LayerLine, read_layers
from ddlcn.report.published import NumberLine
from ddlcn.report.results import CellResult, Grid
from ddlcn.report.writing import count, show_difference, show_number

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"


@dataclass(frozen=True)
class Evidence:
    """What claims are tested on."""

    grids: Mapping[str, Grid]  # by the experiment's name
    numbers: Mapping[str, NumberLine]  # the paper's, by name
    depths: Sequence[DepthLine]

    def compare(self, experiment: str, a: str, b: str) -> list[Comparison]:
        """The lines of a comparison that an experiment names, those with a seed in common."""
        if experiment not in self.grids:
            return []
        named = {(left, right): lines for left, right, lines in compare_named(self.grids[experiment])}
        return [line for line in named.get((a, b), []) if line.paired is not None]

    def find(self, experiment: str) -> list[CellResult]:
        """The cells of an experiment that were run."""
        grid = self.grids.get(experiment)
        return [] if grid is None else [result for result in grid.results if result.accuracy is not None]


Finding = tuple[str, str] | None  # verdict and evidence; None: nothing was run


def _judge(n_true: int, n: int) -> str:
    return HOLDS if n_true == n else IN_PART if n_true else FAILS


def _test_depth(e: Evidence) -> Finding:
    lines = [line for line in e.depths if line.collapses]
    outcomes = [p.outcome for line in lines for p in line.paired.values() if p is not None and p.outcome]
    if not outcomes:
        return None
    gains = outcomes.count("higher")
    # Twice what chance would show is no evidence of a gain.
    verdict = FAILS if gains <= 2.0 * LEVEL * len(outcomes) else _judge(gains, len(outcomes))
    return verdict, summarise_depths(e.depths)


def _test_approximation(e: Evidence) -> Finding:
    if "approximation" not in e.grids:
        return None
    grid = e.grids["approximation"]
    lines = [each for each in zip(read_errors(grid), grid.by_layer, strict=True) if len(each[0].errors) > 1]
    own = [line for line, result in lines if result.cell.settings.depth == "augment"]
    others = [line for line, result in lines if result.cell.settings.depth != "augment"]
    if not own:
        return None
    falls = sum(line.errors[1].mean < line.errors[0].mean for line in own)
    text = "In the paper's form: " + " ".join(line.sentence for line in own)
    if others:
        text += " Residual depth, which is ours: " + " ".join(line.sentence for line in others)
    return _judge(falls, len(own)), text


def _test_convolution(e: Evidence) -> Finding:
    sentences, trained = [], []
    for column, what in (("filters and rectifier", "Random filters"), ("trained filters", "Trained filters")):
        lines = [line.paired for line in e.compare("convolution", "dictionary layers", column)]
        outcomes = [paired.outcome for paired in lines if paired is not None and paired.outcome]
        if not outcomes:
            continue
        below, above = outcomes.count("lower"), outcomes.count("higher")
        trained = outcomes  # the last that were run are what the claim is judged by
        sentences.append(
            f"{what} and a rectifier in place of dictionaries recognise less in {below} of "
            f"{count(len(outcomes), 'comparison')} and more in {above}."
        )
    if not sentences:
        return None
    if len(sentences) == 1:
        sentences.append("Trained filters were not run yet.")
    return _judge(trained.count("lower"), len(trained)), " ".join(sentences)


def _test_few_atoms(e: Evidence) -> Finding:
    names = ("III, DDLCN-2 (1-1), Included", "IV, DDLCN-2 (1-1), Accuracy")
    lines = [e.numbers[name] for name in names if e.numbers[name].verdict]
    if not lines:
        return None
    reached = sum(line.verdict in ("reached", "close") for line in lines)
    found = [f"{line.number.name}: {line.ours}, published {line.number.show()}" for line in lines]
    return _judge(reached, len(lines)), "; ".join(found) + "."


def _test_p_peak(e: Evidence) -> Finding:
    sentences, right = [], []
    for name in ("yaleb-p", "ar-p"):
        by_column: dict[str, dict[int, CellResult]] = {}
        for result in e.find(name):
            by_column.setdefault(result.cell.column, {})[result.cell.settings.dictionary_images or 0] = result
        for column, points in by_column.items():
            if max(points) < 10:
                continue
            first, last = min(points), max(points)
            middle = min((p for p in points if p >= 8), key=lambda p: abs(p - 10))
            rise, after = (pair(points[a].rows, points[b].rows) for a, b in ((first, middle), (middle, last)))
            if rise is None or after is None or not rise.outcome or not after.outcome:
                continue
            right += [rise.outcome == "higher", after.outcome == "level"]
            sentences.append(
                f"{points[last].cell.settings.dataset}, {column}: {rise.a.show()} with p = {first}, {rise.b.show()} "
                f"with {middle} ({rise.verdict}), {after.b.show()} with {last} ({after.verdict})."
            )
    return (_judge(sum(right), len(right)), " ".join(sentences)) if right else None


def _test_ar(e: Evidence) -> Finding:
    own = e.numbers["IV, DDLCN-2 (1-1), Accuracy"]
    others = [
        line
        for name, line in e.numbers.items()
        if name.startswith("IV, ") and line.verdict and not line.number.is_own and not line.number.is_time
    ]
    if not own.verdict or not others:
        return None
    ranked = sorted(others, key=_mean, reverse=True)
    below = sum(_mean(line) < _mean(own) for line in others)
    best = f"{ranked[0].number.row} with {ranked[0].ours}"
    return (
        _judge(below, len(others)),
        f"As we measure them: DDLCN-2 (1-1) has {own.ours}; {below} of {len(others)} other methods of the table are "
        f"below; the best is {best}.",
    )


def _test_few_images(e: Evidence) -> Finding:
    if "contest" not in e.grids:
        return None
    panels = [panel for panel in read_panels(e.grids["contest"]) if panel.dataset == "caltech101"]
    sentences, ahead = [], []
    for t in (5, 10):
        own = e.numbers[f"V, DDLCN-3 (31-30), {t}"]
        best = panels[0].find_best(t, ours=False) if panels else None
        if not own.found or best is None or own.found[0][1].over_classes is None:
            continue
        other = best.points[t].over_classes
        if other is None:
            continue
        ours = own.found[0][1].over_classes
        ahead.append(ours.mean > other.mean)
        sentences.append(
            f"{t} images per class, mean over classes: DDLCN-3 (31-30) {ours.show()}, {best.method} {other.show()}."
        )
    return (_judge(sum(ahead), len(ahead)), " ".join(sentences)) if ahead else None


def _test_speed(e: Evidence) -> Finding:
    sentences, right = [], []
    for table, own_row in (("III", "DDLCN-2 (A-15)"), ("IV", "DDLCN-2 (A-5)")):
        own = _time(e.numbers[f"{table}, {own_row}, Time (ms)"])
        times = {
            line.number.row: _time(line)
            for name, line in e.numbers.items()
            if name.startswith(f"{table}, ") and line.number.is_time and not line.number.is_own
        }
        known = {row: ms for row, ms in times.items() if ms is not None}
        if own is None or not known:
            continue
        right += [(ms < own) == row.startswith("LC-KSVD") for row, ms in known.items()]
        listed = ", ".join(f"{row} {show_number(ms)}" for row, ms in known.items())
        sentences.append(f"Table {table}, our milliseconds for the whole way: {own_row} {show_number(own)}; {listed}.")
    return (_judge(sum(right), len(right)), " ".join(sentences)) if right else None


def _test_dictionary_size(e: Evidence) -> Finding:
    by_row: dict[str, list[CellResult]] = {}
    for result in e.find("caltech101-size"):
        by_row.setdefault(result.cell.row, []).append(result)
    ahead, gaps = 0, []
    for results in by_row.values():
        own = [_over_images(r) for r in results if r.cell.settings.method == "DDLCN"]
        others = [_over_images(r) for r in results if r.cell.settings.method != "DDLCN"]
        if own and others:
            gaps.append(own[0] - max(others))
            ahead += own[0] > max(others)
    if not gaps:
        return None
    return (
        _judge(ahead, len(gaps)),
        f"Ahead of the best of the others with {ahead} of {count(len(gaps), 'size')}, by "
        f"{show_difference(min(gaps))} to {show_difference(max(gaps))} points over all test images.",
    )


def _test_other_features(e: Evidence) -> Finding:
    found = {(r.cell.row, r.cell.column): r.accuracy for r in e.find("pretrained")}
    rows = [row for row, column in found if column == "ddlcn cnn" and (row, "ddlcn fast") in found]
    if not rows:
        return None
    better, sentences = 0, []
    for row in rows:
        network, sift = found[row, "ddlcn cnn"], found[row, "ddlcn fast"]
        if network is None or sift is None:
            continue
        better += network.mean > sift.mean
        sentences.append(f"{row}: {sift.show()} with SIFT, {network.show()} with a network's map.")
    return _judge(better, len(rows)), " ".join(sentences)


def _test_joint(e: Evidence) -> Finding:
    found = {(r.cell.row, r.cell.column): r for r in e.find("joint")}
    pairs = [
        (found[row, "frozen"], r) for (row, name), r in found.items() if name == "joint" and (row, "frozen") in found
    ]
    trained = [each for each in pairs if any(row.epochs for row in each[1].rows)]
    if not trained:
        return None
    higher, sentences = 0, []
    for frozen, joint in trained:
        paired = pair(frozen.rows, joint.rows, joint.cell.over)
        if paired is not None:
            higher += paired.outcome == "higher"
            sentences.append(f"{joint.cell.row}: {paired.a.show()} frozen, {paired.b.show()} joint.")
    text = "As built here; the published code does not do it. " + " ".join(sentences)
    if len(pairs) > len(trained):
        text += f" In {count(len(pairs) - len(trained), 'other setting')} held-out images said that it does not help."
    return _judge(higher, len(trained)), text


def _test_hierarchy(e: Evidence) -> Finding:
    lines = _read_layers(e)
    if not lines:
        return None
    rises = [line.orientations[-1].mean > line.orientations[0].mean for line in lines]
    found = [f"{line.label} {line.orientations[0].mean:.2f} to {line.orientations[-1].mean:.2f}" for line in lines]
    return (
        _judge(sum(rises), len(rises)),
        "Orientations that an atom has in effect (1 is a single straight edge), from layer 1 to the last: "
        f"{'; '.join(found)}. A deeper atom describes a patch of the same size, for it is learned from atoms. "
        "Pictures of digits' atoms are in the section.",
    )


def _test_separability(e: Evidence) -> Finding:
    lines = _read_layers(e)
    if not lines:
        return None
    gains = [line.separability[-1].mean > line.separability[0].mean for line in lines]
    calm = [line.very_large <= VERY_LARGE for line in lines]
    found = [f"{line.label} {line.separability[0].mean:.3f} to {line.separability[-1].mean:.3f}" for line in lines]
    return (
        _judge(sum(gains) + sum(calm), len(gains) + len(calm)),
        "Scatter of the classes' means, as a share of the scatter within classes, from one layer to all: "
        f"{'; '.join(found)}. The largest code of a layer is up to {max(line.very_large for line in lines):.0f} times "
        f"the mean of the layer's codes; more than {VERY_LARGE:.0f} times is called very large here.",
    )


def _read_layers(e: Evidence) -> list[LayerLine]:
    lines = read_layers(e.grids["layers"]) if "layers" in e.grids else []
    return [line for line in lines if len(line.separability) > 1]


TESTS: dict[str, Callable[[Evidence], Finding]] = {
    "depth": _test_depth,
    "approximation": _test_approximation,
    "layer-beats-convolution": _test_convolution,
    "few-atoms": _test_few_atoms,
    "p-peak": _test_p_peak,
    "ar-1-1": _test_ar,
    "few-images": _test_few_images,
    "speed": _test_speed,
    "dictionary-size": _test_dictionary_size,
    "other-features": _test_other_features,
    "joint": _test_joint,
    "hierarchy": _test_hierarchy,
    "separability": _test_separability,
}


def _mean(line: NumberLine) -> float:
    accuracy = line.found[0][1].accuracy
    return 0.0 if accuracy is None else accuracy.mean


def _time(line: NumberLine) -> float | None:
    return line.found[0][1].ms_per_image if line.found else None


def _over_images(result: CellResult) -> float:
    return 0.0 if result.over_images is None else result.over_images.mean

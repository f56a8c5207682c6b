"""A test for each claim of the paper: a verdict, a sentence and a small table, computed from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ddlcn.report.comparisons import LEVEL, OUTCOMES, Paired, pair, summarise_depths
from ddlcn.report.contest import read_panels
from ddlcn.report.evidence import FAILS, IN_PART, Evidence, Finding, Line, judge
from ddlcn.report.layer_claims import find_approximation, find_hierarchy, find_separability
from ddlcn.report.published import NumberLine
from ddlcn.report.results import CellResult
from ddlcn.report.writing import count, show_difference, show_number


def _test_depth(e: Evidence) -> Finding | None:
    by_set: dict[str, list[Paired]] = {}
    for line in e.depths:
        if line.collapses:
            by_set.setdefault(line.dataset, []).extend(p for p in line.paired.values() if p is not None)
    outcomes = [p.outcome for pairs in by_set.values() for p in pairs if p.outcome]
    if not outcomes:
        return None
    of_code = e.compare("published-code", "depth 1", "depth 2")
    tested = [line.paired for line in of_code if line.paired is not None and line.paired.outcome]
    lines = [_count_outcomes(dataset, pairs) for dataset, pairs in by_set.items() if pairs]
    lines += [
        _count_outcomes(f"{line.where}, as the published code has it", [line.paired])
        for line in of_code
        if line.paired is not None
    ]
    gains = outcomes.count("higher")
    # Twice what chance would show is no evidence of a gain.
    verdict = FAILS if gains <= 2.0 * LEVEL * len(outcomes) else judge(gains, len(outcomes))
    sentence = summarise_depths(e.depths)
    if tested:
        gains_of_code = sum(each.outcome == "higher" for each in tested)
        verdict = IN_PART if verdict == FAILS and gains_of_code else verdict
        sentence += (
            " The published code lays its second layer out by the rank of the active atoms, so that it does depend on "
            f"the descriptor: there depth gains in {gains_of_code} of {count(len(tested), 'comparison')}."
        )
    return Finding(verdict, sentence, ("", "comparisons", "gain", "loss", "level", "differences"), tuple(lines))


def _count_outcomes(label: str, pairs: Sequence[Paired]) -> Line:
    outcomes = [each.outcome for each in pairs]
    differences = [each.difference.mean for each in pairs]
    counts = [str(outcomes.count(outcome)) for outcome in ("higher", "lower", "level")]
    ends = dict.fromkeys((show_difference(min(differences)), show_difference(max(differences))))
    return (label, str(len(pairs)), *counts, " to ".join(ends))


def _test_convolution(e: Evidence) -> Finding | None:
    sentences, trained, lines = [], [], []
    for column, what in (("filters and rectifier", "Random filters"), ("trained filters", "Trained filters")):
        compared = [line for line in e.compare("convolution", "dictionary layers", column) if line.paired is not None]
        pairs = [(line.where, line.paired) for line in compared if line.paired is not None and line.paired.outcome]
        if not pairs:
            continue
        trained = [paired.outcome for _, paired in pairs]  # the last that were run are what the claim is judged by
        sentences.append(
            f"{what} and a rectifier in place of dictionaries recognise less in {trained.count('lower')} of "
            f"{count(len(trained), 'comparison')} and more in {trained.count('higher')}."
        )
        lines += [(where, what, p.a.show(), p.b.show(), OUTCOMES[p.outcome]) for where, p in pairs]
    if not sentences:
        return None
    if len(sentences) == 1:
        sentences.append("Trained filters were not run yet.")
    head = ("", "in place of dictionaries", "dictionaries", "filters", "filters are")
    return Finding(judge(trained.count("lower"), len(trained)), " ".join(sentences), head, tuple(lines))


def _test_few_atoms(e: Evidence) -> Finding | None:
    names = ("III, DDLCN-2 (1-1), Included", "IV, DDLCN-2 (1-1), Accuracy")
    found = [e.numbers[name] for name in names if e.numbers[name].verdict]
    if not found:
        return None
    reached = sum(line.verdict in ("reached", "close") for line in found)
    lines = tuple((line.number.name, line.ours, line.number.show(), line.difference) for line in found)
    sentence = f"With (1-1) ours has the published accuracy in {reached} of {len(found)}."
    return Finding(judge(reached, len(found)), sentence, ("", "ours", "published", "difference"), lines)


def _test_p_peak(e: Evidence) -> Finding | None:
    lines, right = [], []
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
            ends = (
                f"p = {first}: {rise.a.show()}",
                f"p = {middle}: {rise.b.show()}, {OUTCOMES[rise.outcome]}",
                f"p = {last}: {after.b.show()}, {OUTCOMES[after.outcome]}",
            )
            lines.append((f"{points[last].cell.settings.dataset}, {column}", *ends))
    if not right:
        return None
    sentence = (
        f"Of {count(len(right), 'step')} on the curves, {sum(right)} are as the paper says: a rise to about 10 "
        "dictionary images, level from there on."
    )
    return Finding(judge(sum(right), len(right)), sentence, ("", "least", "about 10", "most"), tuple(lines))


def _test_ar(e: Evidence) -> Finding | None:
    own = e.numbers["IV, DDLCN-2 (1-1), Accuracy"]
    others = [
        line
        for name, line in e.numbers.items()
        if name.startswith("IV, ") and line.verdict and not line.number.is_own and not line.number.is_time
    ]
    if not own.verdict or not others:
        return None
    ranked = sorted([own, *others], key=_mean, reverse=True)
    below = sum(_mean(line) < _mean(own) for line in others)
    sentence = f"As we measure them, {below} of {len(others)} other methods of the table are below DDLCN-2 (1-1)."
    lines = tuple((line.number.row, line.ours, line.number.show()) for line in ranked)
    return Finding(judge(below, len(others)), sentence, ("", "ours", "published"), lines)


def _test_few_images(e: Evidence) -> Finding | None:
    if "contest" not in e.grids:
        return None
    panels = [panel for panel in read_panels(e.grids["contest"]) if panel.dataset == "caltech101"]
    lines, ahead = [], []
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
        lines.append((f"{t} images per class", ours.show(), f"{best.method} {other.show()}"))
    if not ahead:
        return None
    sentence = f"DDLCN-3 (31-30) is ahead of the best other method that we ran in {sum(ahead)} of {len(ahead)}."
    head = ("mean over classes", "DDLCN-3 (31-30)", "best other")
    return Finding(judge(sum(ahead), len(ahead)), sentence, head, tuple(lines))


def _test_speed(e: Evidence) -> Finding | None:
    lines, right = [], []
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
        ranked = sorted([(own_row, own), *known.items()], key=lambda each: each[1])
        lines += [(table, row, show_number(ms)) for row, ms in ranked]
    if not right:
        return None
    sentence = f"{sum(right)} of {count(len(right), 'comparison')} come out as the paper says, by our milliseconds."
    head = ("table", "", "ms, the whole way")
    return Finding(judge(sum(right), len(right)), sentence, head, tuple(lines))


def _test_dictionary_size(e: Evidence) -> Finding | None:
    by_row: dict[str, list[CellResult]] = {}
    for result in e.find("caltech101-size"):
        by_row.setdefault(result.cell.row, []).append(result)
    lines, gaps = [], []
    for row, results in by_row.items():
        own = [_over_images(r) for r in results if r.cell.settings.method == "DDLCN"]
        others = {r.cell.column: _over_images(r) for r in results if r.cell.settings.method != "DDLCN"}
        if own and others:
            best = max(others, key=lambda method: others[method])
            gaps.append(own[0] - others[best])
            lines.append((row, f"{own[0]:.2f}", f"{best} {others[best]:.2f}", show_difference(gaps[-1])))
    if not gaps:
        return None
    ahead = sum(gap > 0 for gap in gaps)
    sentence = f"Ahead of the best of the others with {ahead} of {count(len(gaps), 'size')}, over all test images."
    return Finding(judge(ahead, len(gaps)), sentence, ("", "DDLCN", "best other", "difference"), tuple(lines))


def _test_other_features(e: Evidence) -> Finding | None:
    found = {(r.cell.row, r.cell.column): r.accuracy for r in e.find("pretrained")}
    better, lines = 0, []
    for (row, column), sift in found.items():
        network = found.get((row, "ddlcn cnn"))
        if column == "ddlcn fast" and sift is not None and network is not None:
            better += network.mean > sift.mean
            lines.append((row, sift.show(), network.show()))
    if not lines:
        return None
    sentence = f"A network's map recognises more than SIFT, with the same preset, in {better} of {len(lines)}."
    return Finding(judge(better, len(lines)), sentence, ("", "SIFT", "a network's map"), tuple(lines))


def _test_joint(e: Evidence) -> Finding | None:
    found = {(r.cell.row, r.cell.column): r for r in e.find("joint")}
    pairs = [
        (found[row, "frozen"], r) for (row, name), r in found.items() if name == "joint" and (row, "frozen") in found
    ]
    trained = [each for each in pairs if any(row.epochs for row in each[1].rows)]
    if not trained:
        return None
    higher, lines = 0, []
    for frozen, joint in trained:
        paired = pair(frozen.rows, joint.rows, joint.cell.over)
        if paired is not None:
            higher += paired.outcome == "higher"
            lines.append((joint.cell.row, paired.a.show(), paired.b.show(), show_difference(paired.difference.mean)))
    sentence = "As built here; the published code does not do it."
    if len(pairs) > len(trained):
        sentence += (
            f" In {count(len(pairs) - len(trained), 'other setting')} held-out images said that it does not help."
        )
    return Finding(judge(higher, len(trained)), sentence, ("", "frozen", "joint", "difference"), tuple(lines))


TESTS: dict[str, Callable[[Evidence], Finding | None]] = {
    "depth": _test_depth,
    "approximation": find_approximation,
    "layer-beats-convolution": _test_convolution,
    "few-atoms": _test_few_atoms,
    "p-peak": _test_p_peak,
    "ar-1-1": _test_ar,
    "few-images": _test_few_images,
    "speed": _test_speed,
    "dictionary-size": _test_dictionary_size,
    "other-features": _test_other_features,
    "joint": _test_joint,
    "hierarchy": find_hierarchy,
    "separability": find_separability,
}


def _mean(line: NumberLine) -> float:
    accuracy = line.found[0][1].accuracy
    return 0.0 if accuracy is None else accuracy.mean


def _time(line: NumberLine) -> float | None:
    return line.found[0][1].ms_per_image if line.found else None


def _over_images(result: CellResult) -> float:
    return 0.0 if result.over_images is None else result.over_images.mean

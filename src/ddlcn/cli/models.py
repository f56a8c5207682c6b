"""`ddlcn train`, `predict`, `explain`, `evaluate`: a model learns from images, looks at others, says why, is judged."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

# What `ddlcn compare` runs unless asked otherwise.
QUICK_METHODS = ("ddlcn fast", "RBF SVM on pixels", "linear SVM on pixels", "nearest neighbour on pixels")

if TYPE_CHECKING:
    from ddlcn.predictions import Prediction
    from ddlcn.training import Findings


def train(
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path("model.ddlcn"),
    preset: Annotated[str, typer.Option(help="fast, accurate or paper.")] = "fast",
    layers: Annotated[int, typer.Option(min=0, help="Layers; 0 means the preset's.")] = 0,
    atoms_per_class: Annotated[int, typer.Option(min=0, help="Atoms per class; 0 means the preset's.")] = 0,
    images_per_class: Annotated[int, typer.Option(min=0, help="Learn from so many per class, test the rest.")] = 0,
    tune: Annotated[bool, typer.Option("--tune", help="Choose k, beta, power and C on training folds first.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of every random choice.")] = 0,
    keep_patches: Annotated[
        bool, typer.Option("--keep-patches", help="Put patches of the pictures into the file, for explanations.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
) -> None:
    """Learn from labelled pictures, say how well it works on pictures held out, and write a model file.

    Example: ddlcn train photos -o photos.ddlcn
    """
    from ddlcn.classifier import DDLCNClassifier
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.datasets.remarks import find_duplicates, make_remarks
    from ddlcn.presets import get_preset
    from ddlcn.training import Job

    def say(text: str) -> None:
        print(f"ddlcn: {text}", file=sys.stderr, flush=True)

    parameters = get_preset(preset, layers or None)
    if atoms_per_class:
        parameters["atoms_per_class"] = atoms_per_class
    if not output.resolve().parent.is_dir():
        raise ValueError(f"folder {str(output.parent)!r} does not exist: make it, or give another --output")
    data = load_labelled(source)
    typer.echo(f"{len(data)} pictures, {len(data.class_names)} classes")
    for path, reason in data.skipped:
        say(f"left out {path}: {reason}")
    groups = find_duplicates(data.paths)
    for remark in make_remarks(data.paths, data.labels, groups):
        say(f"note: {remark}")
    model = DDLCNClassifier(**parameters, random_state=seed, verbose=int(sys.stderr.isatty()))
    job = Job(model, data.paths, data.labels, groups, output, images_per_class or None, tune, resume, keep_patches, say)
    try:
        fitted, findings = job.run()
    except KeyboardInterrupt:
        say("stopped; the same command with --resume goes on from here")
        raise typer.Exit(130) from None
    if findings is None:
        typer.echo(f"accuracy: not known, {fitted.card_['how']}")
    else:
        low, high = findings.interval
        typer.echo(
            f"accuracy: {100 * findings.accuracy:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f}; mean over "
            f"classes {100 * findings.mean_over_classes:.1f} %), {findings.how}"
        )
        _print_confusions(findings)
    size = output.stat().st_size / 1e6
    typer.echo(f"wrote {output} ({size:.1f} MB) after {fitted.card_['trained_in_seconds']:.0f} s")


def add(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    source: Annotated[
        Path, typer.Argument(help="New pictures: a folder of folders, or a CSV table.", metavar="FOLDER")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model file to write; default: MODEL.")
    ] = None,
    old: Annotated[
        Path | None,
        typer.Option("--grow", help="Also learn atoms for new classes; needs the old pictures again.", metavar="OLD"),
    ] = None,
) -> None:
    """Teach a model more pictures, of its classes or of new ones, without starting over.

    Example: ddlcn add model.ddlcn more-photos
    Example: ddlcn add model.ddlcn more-photos --grow photos
    """
    import numpy as np

    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.growing import add_images, grow
    from ddlcn.model_file import load_model

    loaded, data = load_model(model), load_labelled(source)
    for path, reason in data.skipped:
        print(f"ddlcn: left out {path}: {reason}", file=sys.stderr)
    if old is None:
        updated = add_images(loaded, data.paths, data.labels)
    else:
        before = load_labelled(old)
        updated = grow(loaded, [*before.paths, *data.paths], np.concatenate([before.labels, data.labels]))
    new = np.setdiff1d(updated.classes_, loaded.classes_).tolist()
    updated.save(output or model)
    known = f", new classes: {', '.join(map(str, new))}" if new else ""
    typer.echo(f"added {len(data)} pictures{known}; wrote {output or model}. `ddlcn evaluate` says how good it is now")


def predict(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    paths: Annotated[list[str], typer.Argument(help="Images, folders, patterns; - reads a list from standard input.")],
    top: Annotated[int, typer.Option(min=1, help="How many classes to name per image.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table with a heading.")] = False,
    reject: Annotated[bool, typer.Option(help="Say so where an image looks like none of the classes.")] = False,
) -> None:
    """Say what is on images, one line each, as they are judged. Exits with 1 if any could not be read.

    Example: ddlcn predict model.ddlcn holiday/ --top 3
    Example: find . -name "*.png" | ddlcn predict model.ddlcn - --csv > labels.csv
    """
    from ddlcn.datasets.paths import find_images
    from ddlcn.model_file import load_model
    from ddlcn.predictions import predict_each

    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    loaded = load_model(model)
    top = min(top, len(loaded.classes_))
    named = ((str(path), path) for path in find_images(paths, sys.stdin))
    table = csv.writer(sys.stdout, lineterminator="\n")
    if as_csv:
        numbered = [f"{word}{i or ''}" for i in [0, *range(2, top + 1)] for word in ("label", "probability")]
        table.writerow(["path", *numbered, *(["known"] if reject else []), "error"])
    n_failed = 0
    for prediction in predict_each(loaded, named):
        n_failed += bool(prediction.error)
        if as_json:
            print(json.dumps(_to_json(prediction, top, reject), ensure_ascii=False, default=str), flush=True)
        elif as_csv:
            table.writerow(_to_cells(prediction, top, reject))
            sys.stdout.flush()
        elif prediction.error:
            print(f"ddlcn: {prediction.error}", file=sys.stderr, flush=True)
        else:
            print(_to_line(prediction, top, reject), flush=True)
    if n_failed:
        print(f"ddlcn: {n_failed} could not be read", file=sys.stderr)
        raise typer.Exit(1)


def explain(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    image: Annotated[Path, typer.Argument(help="The picture.", metavar="IMAGE")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write: one file, no network.")] = Path(
        "why.html"
    ),
) -> None:
    """Show why a picture is taken for what it is: which parts speak for it, which for the runner-up.

    Example: ddlcn explain model.ddlcn new.jpg -o why.html
    """
    from ddlcn.model_file import load_model
    from ddlcn.pages.explanation import render_explanation
    from ddlcn.report.writing import replace_file

    replace_file(output, render_explanation(load_model(model), image, str(image)))
    typer.echo(f"wrote {output}")


def evaluate(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    html: Annotated[Path | None, typer.Option(help="Also write a page: confusions, mistakes, atoms.")] = None,
) -> None:
    """Count how well a model does on labelled pictures that it has not seen.

    Example: ddlcn evaluate model.ddlcn new-photos --html page.html
    """
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.evaluation import evaluate as judge
    from ddlcn.model_file import load_model
    from ddlcn.pages.evaluation import render_evaluation
    from ddlcn.report.writing import replace_file

    loaded, data = load_model(model), load_labelled(source)
    evaluation = judge(loaded, data.paths, data.labels, data.skipped, sys.stderr.isatty())
    for failure in evaluation.unreadable:
        print(f"ddlcn: left out: {failure.error}", file=sys.stderr)
    found = evaluation.findings
    interval = " to ".join(f"{100 * bound:.1f}" for bound in found.interval)
    typer.echo(f"accuracy: {100 * found.accuracy:.1f} % of {len(found.truth)} images (95 % interval {interval})")
    typer.echo(f"mean over classes: {100 * found.mean_over_classes:.1f} %")
    typer.echo(f"expected calibration error: {evaluation.calibration_error:.3f}")
    if evaluation.area_for_unknown is not None:
        n_unknown = int((~evaluation.is_of_known_class).sum())
        area = f"area under the curve {evaluation.area_for_unknown:.3f}"
        typer.echo(f"known against {n_unknown} images of unknown classes: {area}")
    _print_confusions(found)
    if html is not None:
        images = [prediction.name for prediction in evaluation.predictions]
        replace_file(html, render_evaluation(loaded, evaluation, images, str(model), str(source)))
        typer.echo(f"wrote {html}")


def compare(
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    html: Annotated[Path | None, typer.Option(help="Also write a page with the learning curves.")] = None,
    methods: Annotated[str, typer.Option(help="Which, separated by commas; none means all that are quick.")] = "",
    draws: Annotated[int, typer.Option(min=1, help="How many random draws of training pictures.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
) -> None:
    """Learning curves on your own pictures: is this the right method, and would more labels help?

    Example: ddlcn compare photos --html compare.html
    """
    from rich.console import Console
    from rich.table import Table

    from ddlcn._progress import track
    from ddlcn.comparison import compare as run
    from ddlcn.comparison import conclude, list_counts, make_methods, summarise
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.datasets.remarks import find_duplicates

    chosen = make_methods([name.strip() for name in methods.split(",")] if methods else QUICK_METHODS)
    data = load_labelled(source)
    groups = find_duplicates(data.paths)
    total = len(list_counts(data.labels, groups)) * draws * len(chosen)
    steps = track(run(chosen, data.paths, data.labels, groups, draws, seed), total, "comparing methods", True)
    curves = summarise(list(steps))
    table = Table(title=f"{len(data)} pictures, {len(data.class_names)} classes, {draws} draws: recognised, %")
    table.add_column("images per class", justify="right")
    for method in curves:
        table.add_column(method, justify="right")
    for points in zip(*curves.values(), strict=True):
        shown = [f"{100 * p.accuracy:.1f} ({100 * p.low:.1f} to {100 * p.high:.1f})" for p in points]
        table.add_row(str(points[0].n_per_class), *shown)
    Console(width=None if Console().is_terminal else 130).print(table)
    for sentence in conclude(curves):
        typer.echo(sentence)
    if html is not None:
        from ddlcn.pages.comparison import render_comparison
        from ddlcn.report.writing import replace_file

        replace_file(html, render_comparison(curves, str(source), len(data), len(data.class_names), draws))
        typer.echo(f"wrote {html}")


def serve(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    max_megabytes: Annotated[int, typer.Option(min=1, help="Largest upload.")] = 20,
    max_megapixels: Annotated[int, typer.Option(min=1, help="Largest image.")] = 50,
) -> None:
    """Look at pictures in a browser: a page, and POST /predict for programs. Works with the network off.

    Example: ddlcn serve model.ddlcn
    """
    from ddlcn.serve.app import run_server
    from ddlcn.serve.uploads import Limits

    typer.echo(f"http://{host}:{port} (Ctrl+C stops it)", err=True)
    run_server(model, host, port, Limits(max_megabytes * 1_000_000, max_megapixels * 1_000_000))


def _print_confusions(found: Findings) -> None:
    for own, taken_for, times in found.list_confusions():
        typer.echo(f"  {own} taken for {taken_for}: {times} of {int((found.truth == own).sum())}")


def _to_line(prediction: Prediction, top: int, reject: bool) -> str:
    guesses = ", ".join(f"{label} {100 * p:.0f} %" for label, p in prediction.ranking[:top])
    unknown = reject and not prediction.is_known
    return f"{prediction.name}: {f'unknown (most like {guesses})' if unknown else guesses}"


def _to_json(prediction: Prediction, top: int, reject: bool) -> dict[str, object]:
    if prediction.error:
        return {"path": prediction.name, "error": prediction.error}
    unknown = reject and not prediction.is_known
    guesses = [{"label": label, "probability": round(p, 6)} for label, p in prediction.ranking[:top]]
    known = {"known": prediction.is_known} if reject else {}
    return {"path": prediction.name, "label": None if unknown else prediction.label, **known, "top": guesses}


def _to_cells(prediction: Prediction, top: int, reject: bool) -> list[object]:
    guesses: list[object] = ["", ""] * top
    if not prediction.error:
        guesses = [part for label, p in prediction.ranking[:top] for part in (label, round(p, 6))]
        if reject and not prediction.is_known:
            guesses[0] = ""
    known = [] if not reject else ["" if prediction.error else str(prediction.is_known).lower()]
    return [prediction.name, *guesses, *known, prediction.error]

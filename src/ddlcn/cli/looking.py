"""`ddlcn predict`, `ddlcn explain`, `ddlcn evaluate` and `ddlcn serve`: apply a model to pictures."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddlcn.cli.printing import print_confusions

if TYPE_CHECKING:
    from ddlcn.workflows.predict import Prediction


def predict(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    paths: Annotated[list[str], typer.Argument(help="Images, folders, patterns; - reads a list from standard input.")],
    top: Annotated[int, typer.Option(min=1, help="Number of classes to print per image.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table with a heading.")] = False,
    reject: Annotated[bool, typer.Option(help="Report images that look like none of the classes as unknown.")] = False,
) -> None:
    """Predict the class of images, one line each. Exits with 1 if any could not be read.

    Example: ddlcn predict model.ddlcn holiday/ --top 3
    Example: find . -name "*.png" | ddlcn predict model.ddlcn - --csv > labels.csv
    """
    from ddlcn.classifier import load_model
    from ddlcn.datasets.paths import find_images
    from ddlcn.workflows.predict import predict_each

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
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write: one self-contained file.")] = Path(
        "why.html"
    ),
) -> None:
    """Show why a picture is predicted as its class: the parts that support it, and those that support the runner-up.

    Example: ddlcn explain model.ddlcn new.jpg -o why.html
    """
    from ddlcn.classifier import load_model
    from ddlcn.report.templating import check_pages
    from ddlcn.utils.files import check_writable, write_whole
    from ddlcn.web.explanation import render_explanation

    check_pages()
    check_writable(output, make_folder=True)
    write_whole(output, render_explanation(load_model(model), image, str(image)), make_folder=True)
    typer.echo(f"wrote {output}")


def evaluate(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    html: Annotated[Path | None, typer.Option(help="Also write a page: confusions, mistakes, atoms.")] = None,
) -> None:
    """Measure a model on labelled pictures that it was not trained on.

    Example: ddlcn evaluate model.ddlcn new-photos --html page.html
    """
    from ddlcn.classifier import load_model
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.report.templating import check_pages
    from ddlcn.utils.files import check_writable, write_whole
    from ddlcn.utils.progress import say
    from ddlcn.web.evaluation import render_evaluation
    from ddlcn.workflows.evaluate import evaluate as evaluate_model

    if html is not None:
        check_pages()
        check_writable(html, make_folder=True)
    loaded, data = load_model(model), load_labelled(source)
    evaluation = evaluate_model(loaded, data.paths, data.labels, data.skipped, sys.stderr.isatty())
    for failure in evaluation.unreadable:
        print(f"ddlcn: left out: {failure.error}", file=sys.stderr)
    if evaluation.remark:
        say(f"note: {evaluation.remark}")
    found = evaluation.result
    interval = " to ".join(f"{100 * bound:.1f}" for bound in found.interval)
    typer.echo(f"accuracy: {100 * found.accuracy:.1f} % of {len(found.y_true)} images (95 % interval {interval})")
    typer.echo(f"mean over classes: {100 * found.balanced_accuracy:.1f} %")
    typer.echo(f"expected calibration error: {evaluation.calibration_error:.3f}")
    if evaluation.area_for_unknown is not None:
        n_unknown = int((~evaluation.is_of_known_class).sum())
        area = f"area under the curve {evaluation.area_for_unknown:.3f}"
        typer.echo(f"known against {n_unknown} images of unknown classes: {area}")
    print_confusions(found)
    if html is not None:
        images = [prediction.name for prediction in evaluation.predictions]
        write_whole(html, render_evaluation(loaded, evaluation, images, str(model), str(source)), make_folder=True)
        typer.echo(f"wrote {html}")


def serve(
    model: Annotated[Path, typer.Argument(help="What `ddlcn train` wrote.", metavar="MODEL")],
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    max_megabytes: Annotated[int, typer.Option(min=1, help="Largest upload.")] = 20,
    max_megapixels: Annotated[int, typer.Option(min=1, help="Largest image.")] = 50,
) -> None:
    """Serve a model: a page for the browser, and POST /predict for programs. Works offline.

    Example: ddlcn serve model.ddlcn
    """
    from ddlcn.web.app import run_server
    from ddlcn.web.uploads import Limits

    n_bytes = max_megabytes * 1_000_000
    limits = Limits(n_bytes, max_request_bytes=5 * n_bytes, max_pixels=max_megapixels * 1_000_000)
    run_server(model, host, port, limits, lambda address: typer.echo(address, err=True))


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

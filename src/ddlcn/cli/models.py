"""`ddlcn predict`: a model looks at images."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ddlcn.predictions import Prediction


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

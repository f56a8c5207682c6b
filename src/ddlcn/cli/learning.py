"""`ddlcn train`, `ddlcn add` and `ddlcn compare`. In: pictures and labels. Out: a model or a comparison."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddlcn.cli.printing import print_confusions

# The methods of `ddlcn compare` by default.
QUICK_METHODS = ("ddlcn", "RBF SVM", "linear SVM", "nearest neighbour")


def train(
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path("model.ddlcn"),
    preset: Annotated[
        str, typer.Option(help="auto (the default), photo, aligned, drawn, backbone, fast, accurate or paper.")
    ] = "",
    features: Annotated[
        str,
        typer.Option(help="Descriptors: sift, cnn (photographs of things), sift+cnn or onnx:FILE."),
    ] = "",
    layers: Annotated[int, typer.Option(min=0, help="Layers; 0 means the preset's.")] = 0,
    atoms_per_class: Annotated[int, typer.Option(min=0, help="Atoms per class; 0 means the preset's.")] = 0,
    images_per_class: Annotated[
        int, typer.Option(min=0, help="Train on this number per class, test on the others.")
    ] = 0,
    tune: Annotated[bool, typer.Option("--tune", help="Choose k, beta, power and C on training folds first.")] = False,
    joint: Annotated[
        bool, typer.Option("--joint", help="Train atoms and classifier together, if held-out pictures say so.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random choices.")] = 0,
    keep_patches: Annotated[
        bool, typer.Option("--keep-patches", help="Store patches of the pictures in the file, for explanations.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted training.")] = False,
) -> None:
    """Train on labelled pictures, estimate the accuracy on held-out pictures, and write a model file.

    Example: ddlcn train photos -o photos.ddlcn
    Example: ddlcn train photos --preset fast
    Example: ddlcn train photos --features cnn
    """
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.datasets.quality_checks import find_duplicates, make_remarks
    from ddlcn.utils.files import check_writable
    from ddlcn.utils.progress import say
    from ddlcn.workflows.train import Training, prepare_model

    if not output.resolve().parent.is_dir():
        raise ValueError(f"folder {str(output.parent)!r} does not exist: make it, or give another --output")
    check_writable(output)
    verbose = int(sys.stderr.isatty())  # progress on a terminal, quiet in a pipe
    # Before any picture is read: an unknown option value or a missing package raises at once.
    changes = {"atoms_per_class": atoms_per_class} if atoms_per_class else {}
    changes |= {"random_state": seed, "verbose": verbose, "keep_patches": keep_patches, "joint": joint}
    model = prepare_model(preset, layers or None, features, **changes)
    data = load_labelled(source, verbose=verbose)
    typer.echo(f"{len(data)} pictures, {len(data.class_names)} classes")
    for path, reason in data.skipped:
        say(f"left out {path}: {reason}")
    groups = find_duplicates(data.thumbnails)
    for remark in make_remarks(data.paths, data.labels, groups):
        say(f"note: {remark}")
    training = Training(
        model, data.paths, data.labels, groups, output,
        n_per_class=images_per_class or None, tune=tune, resume=resume,
    )  # fmt: skip
    if verbose:
        training.say = say
    try:
        fitted, result = training.run()
    except KeyboardInterrupt:
        say("stopped; the same command with --resume continues from here")
        raise typer.Exit(130) from None
    if training.recipe:
        typer.echo(f"chosen: {training.recipe}")
    if "joint" in fitted.card_:
        typer.echo(f"joint: {fitted.card_['joint']}")
    if training.chosen:
        typer.echo(f"chosen on folds: {', '.join(f'{name} {value}' for name, value in training.chosen.items())}")
    if result is None:
        typer.echo(f"accuracy: not known, {fitted.card_['how']}")
    else:
        low, high = result.interval
        typer.echo(
            f"accuracy: {100 * result.accuracy:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f}; mean over "
            f"classes {100 * result.balanced_accuracy:.1f} %), {result.description}"
        )
        print_confusions(result)
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
        typer.Option("--expand", help="Also learn atoms for new classes; needs the old pictures.", metavar="OLD"),
    ] = None,
) -> None:
    """Update a model with more pictures, of its classes or of new ones, without training from scratch.

    Example: ddlcn add model.ddlcn more-photos
    Example: ddlcn add model.ddlcn more-photos --expand photos
    """
    import numpy as np

    from ddlcn.classifier import load_model
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.utils.files import check_writable
    from ddlcn.utils.progress import say
    from ddlcn.workflows.update import expand, update

    check_writable(output or model)
    loaded, data = load_model(model), load_labelled(source)
    for path, reason in data.skipped:
        say(f"left out {path}: {reason}")
    if old is None:
        updated = update(loaded, data.paths, data.labels)
    else:
        before = load_labelled(old)
        updated = expand(loaded, [*before.paths, *data.paths], np.concatenate([before.labels, data.labels]))
    new = np.setdiff1d(updated.classes_, loaded.classes_).tolist()
    updated.save(output or model)
    known = f", new classes: {', '.join(map(str, new))}" if new else ""
    typer.echo(f"added {len(data)} pictures{known}; wrote {output or model}. `ddlcn evaluate` measures it")


def compare(
    source: Annotated[
        Path | None, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the learning curves.")] = None,
    methods: Annotated[str, typer.Option(help="Separated by commas, or all; the default is a few quick ones.")] = "",
    vectors: Annotated[
        str,
        typer.Option(
            help="Input of the methods on vectors: pixels, random, eigen, hog, pyramid, cnn, or an .npz or .csv."
        ),
    ] = "pixels",
    minutes: Annotated[float, typer.Option(min=0.0, help="Time limit for training a method.")] = 10.0,
    list_them: Annotated[bool, typer.Option("--list", help="Name the methods and stop.")] = False,
    draws: Annotated[int, typer.Option(min=1, help="Number of random draws of training pictures.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
) -> None:
    """Learning curves on your own pictures: is this the right method, and would more labels help?

    Example: ddlcn compare photos --html compare.html
    Example: ddlcn compare photos --methods "ddlcn fast,LLC,SRC,LCKSVD2" --vectors pyramid
    """
    from rich.console import Console
    from rich.table import Table

    from ddlcn.baselines.registry import METHODS, find_missing
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.datasets.quality_checks import find_duplicates
    from ddlcn.report.templating import check_pages
    from ddlcn.utils.files import check_writable, write_whole
    from ddlcn.utils.progress import track
    from ddlcn.workflows.compare import LeftOut, Outcome, conclude, list_counts, make_methods, summarise
    from ddlcn.workflows.compare import compare as run

    if list_them:
        for each in METHODS.values():
            typer.echo(f"{each.name:18} {each.about} ({each.works_on})")
        return
    if source is None:
        raise ValueError("FOLDER is missing: name a folder of folders, or a CSV table")
    names = [name.strip() for name in methods.split(",")] if methods else list(QUICK_METHODS)
    if names == ["all"]:
        names = [name for name in METHODS if not find_missing(name)]
    for name in names:
        if find_missing(name):
            raise ValueError(f"{name} needs {find_missing(name)}: pip install 'ddlcn[{METHODS[name].needs}]'")
    if html is not None:
        check_pages(figures=True)
        check_writable(html, make_folder=True)
    chosen = make_methods(names, vectors)
    verbose = int(sys.stderr.isatty())
    data = load_labelled(source, verbose=verbose)
    groups = find_duplicates(data.thumbnails)
    total = len(list_counts(data.labels, groups)) * draws * len(chosen)
    outcomes = run(chosen, data.paths, data.labels, groups, draws, seed, 60.0 * minutes)
    done: list[Outcome | LeftOut] = []
    try:
        for step in track(outcomes, total, "comparing methods", verbose > 0):
            done.append(step)
    except KeyboardInterrupt:
        print(f"ddlcn: stopped after {len(done)} of {total} runs; of those:", file=sys.stderr)
    left_out = {step.method: step.reason for step in done if isinstance(step, LeftOut)}
    for method, reason in left_out.items():
        print(f"ddlcn: {method} is left out: {reason}", file=sys.stderr)
    curves = summarise(done)
    table = Table(title=f"{len(data)} pictures, {len(data.class_names)} classes, {draws} draws: recognised, %")
    counts = list_counts(data.labels, groups)
    table.add_column("images per class", justify="left")
    for n in counts:
        table.add_column(str(n), justify="right")
    for method, points in curves.items():
        shown = {p.n_per_class: f"{100 * p.accuracy:.1f} ({100 * p.low:.1f} to {100 * p.high:.1f})" for p in points}
        missing = "over budget" if left_out.get(method) == "over budget" else "–"
        table.add_row(method, *(shown.get(n, missing) for n in counts))
    Console(width=None if Console().is_terminal else 130).print(table)
    for sentence in conclude(curves):
        typer.echo(sentence)
    if html is not None:
        from ddlcn.web.comparison import render_comparison

        page = render_comparison(curves, str(source), len(data), len(data.class_names), draws)
        write_whole(html, page, make_folder=True)
        typer.echo(f"wrote {html}")

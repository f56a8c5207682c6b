"""`ddlcn check`: what is wrong with labelled pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def check(
    source: Annotated[
        Path, typer.Argument(help="A folder of folders, or a CSV table of path,label.", metavar="FOLDER")
    ],
    against: Annotated[
        Path | None, typer.Option(help="Pictures for tests: none of them should be in FOLDER.", metavar="TESTED")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    top: Annotated[int, typer.Option(min=0, help="Number of doubtful pictures to print.")] = 20,
    preset: Annotated[str, typer.Option(help="The settings to learn with; auto chooses them.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
) -> None:
    """Find pictures in the wrong folder, duplicates, shortcuts and files that cannot be read. Nothing is changed.

    Example: ddlcn check photos --html check.html
    Example: ddlcn check photos --against tested --json
    """
    from ddlcn.datasets.labelled import load_labelled
    from ddlcn.report.templating import check_pages
    from ddlcn.utils.files import check_writable, write_whole
    from ddlcn.utils.progress import say
    from ddlcn.web.checking import render_check
    from ddlcn.workflows.check import check as check_pictures
    from ddlcn.workflows.train import prepare_model

    if html is not None:
        check_pages()
        check_writable(html, make_folder=True)
    verbose = int(sys.stderr.isatty())
    model = prepare_model(preset, None, "", random_state=seed)
    data = load_labelled(source, verbose=verbose)
    tested = None if against is None else load_labelled(against, verbose=verbose)
    found = check_pictures(model, data, tested, say if verbose else lambda _: None, verbose > 0)
    if as_json:
        typer.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=1))
    else:
        typer.echo(f"{len(data)} pictures, {len(data.class_names)} classes")
        for path, reason in data.skipped:
            typer.echo(f"left out: {path}: {reason}")
        for remark in found.remarks:
            typer.echo(f"note: {remark}")
        for shortcut in found.shortcuts:
            typer.echo(
                f"shortcut: {shortcut.name} alone recognises {100 * shortcut.recognised:.0f} % (the largest class has "
                f"{100 * shortcut.guessed:.0f} %); a model that learns it fails where it differs"
            )
        for path, other in found.also_tested:
            typer.echo(f"also tested: {path} is a near-duplicate of {other}")
        typer.echo(found.summary)
        for doubt in found.doubts[:top]:
            typer.echo(
                f"  {data.paths[doubt.index]}: in {data.labels[doubt.index]} ({100 * doubt.own_probability:.0f} %), "
                f"looks like {doubt.looks_like} ({100 * doubt.probability:.0f} %)"
            )
        if len(found.doubts) > top:
            typer.echo(f"  and {len(found.doubts) - top} more: --top, --json or --html show them")
    if html is not None:
        write_whole(html, render_check(found, str(source)), make_folder=True)
        typer.echo(f"wrote {html}", err=as_json)

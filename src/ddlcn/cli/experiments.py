"""`ddlcn reproduce`: the paper's tables and figures, one command each. `ddlcn report`: a page about the runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

# Relative to the working directory: results belong to the user, not to the installation.
RESULTS = Path("results/runs.sqlite")


def reproduce(
    name: Annotated[str, typer.Argument(help="Which table or figure; --list names them.")] = "",
    seeds: Annotated[int, typer.Option(min=0, help="How many draws; 0 means as many as the experiment asks for.")] = 0,
    quick: Annotated[bool, typer.Option(help="A quick run on a part of the data; not the result.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, each with its share of the cores.")] = 1,
    results: Annotated[Path, typer.Option(help="The results file; finished runs in it are not repeated.")] = RESULTS,
    rows: Annotated[
        Path | None,
        typer.Option(help="A folder, .jsonl.gz or .jsonl file: finished runs are read from it and added to it."),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
) -> None:
    """Run the experiments of one of the paper's tables or figures, and print published, ours and the difference.

    If interrupted, the same command continues where it stopped.

    Example: ddlcn reproduce yaleb --quick
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ddlcn.experiments.catalogue import experiment_names, leave_out_missing, load_experiment, make_quick
    from ddlcn.experiments.runner import carry_out, plan
    from ddlcn.experiments.store import Store
    from ddlcn.report.console import print_experiment, print_experiments

    console = Console(width=None if Console().is_terminal else 130)
    if list_them or not name:
        print_experiments([load_experiment(each) for each in experiment_names()], console)
        return
    experiment, missing = leave_out_missing(load_experiment(name))
    for method, package in missing.items():
        print(f"ddlcn: {method} is left out: it needs {package}, which is not installed", file=sys.stderr)
    if quick:
        experiment = make_quick(experiment)
    store = Store(results)
    if rows is not None:
        store.read_lines(rows)
    tasks = plan(experiment, store, seeds or None)
    # Two cells may show the same run, by its two accuracies.
    wanted = sum({cell.settings: seeds or cell.seeds for cell in experiment.cells}.values())
    left = len(tasks)
    errors = Console(stderr=True)
    errors.print(f"{experiment.title}: {wanted} runs, {wanted - left} of them already finished, in {results}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
        bar = progress.add_task("starting", total=left)

        def report_step(text: str) -> None:
            progress.update(bar, description=text)
            if not errors.is_terminal:
                print(text, file=errors.file, flush=True)

        for _ in carry_out(tasks, store, jobs, report_step):
            progress.advance(bar)
            if rows is not None:
                store.write_lines(rows)
    if rows is not None:
        store.write_lines(rows)  # includes runs of an earlier command without --rows
    print_experiment(experiment, list(store.rows()), console)
    store.close()


def report(
    results: Annotated[
        Path,
        typer.Argument(
            help="What `ddlcn reproduce` wrote: the results file, or what --rows named (such as docs/results)."
        ),
    ] = RESULTS,
    html: Annotated[Path, typer.Option(help="The page to write: one self-contained file.")] = Path("report.html"),
    summary: Annotated[Path | None, typer.Option(help="Also write a summary in markdown.")] = None,
) -> None:
    """Write finished runs as one HTML page: published and ours, curves, confusions, time, and the leak.

    Example: ddlcn report --html report.html
    """
    from ddlcn.experiments.catalogue import experiment_names, load_experiment
    from ddlcn.experiments.store import read_rows
    from ddlcn.report import write_report, write_summary

    rows = read_rows(results)
    experiments = [load_experiment(name) for name in experiment_names()]
    write_report(rows, experiments, html)
    typer.echo(f"wrote {html}, from {len(rows)} runs")
    if summary is not None:
        write_summary(rows, experiments, summary)
        typer.echo(f"wrote {summary}")

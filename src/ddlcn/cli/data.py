"""`ddlcn data list`, `ddlcn data verify` and `ddlcn data fetch`."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Data sets: their sources, whether they are complete, how to get them.", no_args_is_help=True)


@app.command("list")
def list_sets() -> None:
    """List the data sets: contents, whether each is present, source and terms.

    Example: ddlcn data list
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ddlcn.datasets import CATALOGUE, data_root
    from ddlcn.datasets.verify import is_present

    root = data_root()
    console = Console()
    table = Table(title="Data sets")
    for heading in ("name", "title", "classes", "images", "present"):
        table.add_column(heading, justify="right" if heading in ("classes", "images") else "left")
    notes = Table.grid(padding=(0, 2, 0, 0))
    for record in CATALOGUE.values():
        present = "yes" if is_present(record, root) else "no"
        table.add_row(record.name, record.title, f"{record.n_classes:,}", f"{record.n_images:,}", present)
        facts = {"from": record.source, "terms": record.terms, "get it": record.how_to_get, "note": record.note}
        if record.name != record.folder:  # a part of another set, from the same source
            facts = {"note": record.note}
        for i, (label, text) in enumerate(facts.items()):
            if text:
                # "fold" wraps an address that is wider than the screen; the default would truncate it
                notes.add_row(Text(record.name if i == 0 else "", style="bold"), label, Text(text, overflow="fold"))
    console.print(table)
    console.print(notes)
    typer.echo(f"searched {root} (set DDLCN_DATA to use another folder)")


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Which data sets; none means all.")] = None,
) -> None:
    """Check that data sets are complete: checksums, counts, every image. Exits with 1 on a problem.

    Example: ddlcn data verify
    Example: ddlcn data verify mnist ar
    """
    from ddlcn.datasets.verify import verify as verify_sets

    wrong = False
    for finding in verify_sets(names or ()):
        typer.echo(str(finding))
        wrong = wrong or finding.state == "problem"
    if wrong:
        raise typer.Exit(1)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Such as mnist, omniglot, caltech101 or caltech256.")],
) -> None:
    """Download a data set that has a public address. If interrupted, the same command continues.

    Example: ddlcn data fetch mnist
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TimeRemainingColumn, TransferSpeedColumn

    from ddlcn.datasets.fetch import fetch as fetch_files

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    bar = Progress(*columns, console=Console(stderr=True))

    def show(file: str, done: int, total: int | None) -> None:
        if file not in tasks:
            bar.start()
            tasks[file] = bar.add_task(file, total=total)
        bar.update(tasks[file], completed=done, total=total)

    try:
        paths = fetch_files(name, progress=show)
    finally:
        if tasks:
            bar.stop()
    for path in paths:
        typer.echo(str(path))
    typer.echo(f"`ddlcn data verify {name}` checks every image")

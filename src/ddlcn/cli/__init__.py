"""The command line: parse, call, print. Heavy imports happen in the command that needs them.

One file per group of commands; their functions are registered here.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ddlcn.cli import basics, checking, data, experiments, learning, looking

app = typer.Typer(
    help="Recognise images from a few labelled examples per class.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ddlcn import __version__

        typer.echo(f"ddlcn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


app.command()(basics.demo)
app.command()(basics.info)
app.command()(checking.check)
app.command()(learning.train)
app.command()(learning.add)
app.command()(looking.predict)
app.command()(looking.explain)
app.command()(looking.evaluate)
app.command()(learning.compare)
app.command()(looking.serve)
app.command()(experiments.reproduce)
app.command()(experiments.report)
app.add_typer(data.app, name="data")


def main() -> None:
    """Entry point: errors that a user can fix are printed as one line, without a traceback."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:  # an extra that is not installed is an ImportError
        print(f"ddlcn: {error}", file=sys.stderr)
        sys.exit(1)

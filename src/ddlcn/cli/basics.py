"""`ddlcn demo` and `ddlcn info`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="How many random draws of training images.")] = 5,
) -> None:
    """Compare with two SVMs on scikit-learn's digits, ten training images per class (under a minute, no download).

    Example: ddlcn demo --seeds 3
    """
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from ddlcn.workflows.demo import IMAGES_PER_CLASS, make_models, run_demo, summarise

    n_rows = seeds * len(make_models(0))
    bar = track(run_demo(seeds), "fitting and testing", total=n_rows, console=Console(stderr=True))
    table = Table(title=f"Handwritten digits, {IMAGES_PER_CLASS} training images per class, {seeds} draws")
    for heading in ("method", "accuracy %", "deviation", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for method, accuracy, deviation, seconds in summarise(list(bar)):
        table.add_row(method, f"{100 * accuracy:.2f}", f"{100 * deviation:.2f}", f"{seconds:.2f}")
    Console().print(table)


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file, to print its card instead.", metavar="MODEL")
    ] = None,
) -> None:
    """Print versions, threads, and the folders of compiled code and data sets; or the card of a model file.

    Example: ddlcn info
    Example: ddlcn info model.ddlcn
    """
    if model is not None:
        from ddlcn.persistence.model_file import describe_model

        typer.echo("\n".join(f"{name}: {value}" for name, value in describe_model(model).items()))
        return
    import platform
    from importlib.metadata import version

    from ddlcn import __version__
    from ddlcn.datasets import data_root
    from ddlcn.engines.compile import cache_folder
    from ddlcn.utils.threads import count_threads

    typer.echo(f"ddlcn {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for package in ("numpy", "scipy", "scikit-learn", "numba", "pillow", "safetensors"):
        typer.echo(f"  {package} {version(package)}")
    typer.echo(f"threads: {count_threads(None)}")
    typer.echo(f"compiled code: {cache_folder()}")
    typer.echo(f"data sets: {data_root()}")

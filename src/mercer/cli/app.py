"""The commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Mercer: kernel machines that learn their features.", no_args_is_help=True, add_completion=True)


@app.callback()
def mercer() -> None:
    """Mercer: kernel machines that learn their features."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there.")] = Path("mercer-demo"),
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
) -> None:
    """A tour on data that scikit-learn ships: a learned metric, an embedding, a map of classes."""
    from mercer.cli.demo import run

    run(out, seed)

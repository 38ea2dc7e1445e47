"""`mercer embed`: coordinates of rows or images, learned without labels, and a map of them."""

from pathlib import Path
from typing import Any

from rich.console import Console

from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import indented, notes, number, out_console, print_json, waiting
from mercer.app.files.tables import check_model_output, check_writable, write_table
from mercer.app.projects.embedding import DataEmbedding
from mercer.app.projects.unlabeled import UnlabeledData, read_data
from mercer.io import save as save_model


def run(
    data: list[Path],
    out: Path,
    n_components: int,
    ignore: tuple[str, ...],
    save: Path | None,
    seed: int,
    as_json: bool,
    tables: TableOptions = PLAIN,
) -> None:
    """Read the data, learn coordinates, write them, and print what was found."""
    check_outputs(data, out, save)
    workflow = DataEmbedding(n_components, ignore=ignore, random_state=seed)
    write_answers(workflow, data, out, save, tables)
    if as_json:
        print_json(document(workflow, data, out, save))
        return
    console = out_console()
    console.print(f"Read {workflow.describe()} from {named(data)}", soft_wrap=True)
    console.print(
        f"Learned {workflow.n_components_} coordinates; their effective rank is {number(workflow.effective_rank_)}\n",
        soft_wrap=True,
    )
    show_settings(console, workflow.settings_)
    show_files(console, out, save)


def document(workflow: DataEmbedding, data: list[Path], out: Path, save: Path | None) -> dict[str, Any]:
    """Return all that is printed, for programs."""
    return {
        "data": for_programs(data),
        **about_data(workflow),
        "n_components": workflow.n_components_,
        "effective_rank": workflow.effective_rank_,
        "map_rows": len(workflow.map_rows_),
        "settings": workflow.settings_,
        "out": out,
        "model": save,
    }


def check_outputs(data: list[Path], out: Path, save: Path | None) -> None:
    """Raise if an output cannot be written, before anything is computed."""
    check_writable(out, read=data)
    if save is not None:
        check_model_output(save, read=data)


def write_answers(workflow: Any, data: list[Path], out: Path, save: Path | None, tables: TableOptions = PLAIN) -> None:
    """Fit a workflow to a table or to images, and write its answers and, if `save` is a path, the model."""
    with notes():
        with waiting(f"reading {named(data)}"):
            given = read_data(data, tables.reading())
        with waiting("learning"):
            answers = workflow.fit(given).predict_frame(given)
    if save is not None:
        save_model(workflow, save)
    write_table(answers, out, safe_csv=tables.safe_csv)


def about_data(workflow: UnlabeledData) -> dict[str, Any]:
    """Return what was read, for programs."""
    kinds = None if workflow.encoder_ is None else workflow.encoder_.kinds_
    return {
        "reads": workflow.reads,
        "rows": workflow.n_rows_,
        "columns": kinds,
        "image_shape": workflow.image_shape_,
    }


def show_settings(console: Console, settings: dict[str, Any]) -> None:
    """Print the settings that were chosen."""
    console.print("Chosen", style="bold")
    for name, value in settings.items():
        console.print(indented(f"{name}: {number(value) if isinstance(value, float) else value}"))
    console.print()


def show_files(console: Console, out: Path, save: Path | None) -> None:
    """Print where the answers and the model were written."""
    console.print(f"Written to {out}", soft_wrap=True)
    if save is not None:
        console.print(f"Model saved to {save}", soft_wrap=True)

"""`mercer predict`: answers of a saved model for new rows or images, in a file."""

from inspect import signature
from pathlib import Path
from typing import Any

from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import notes, out_console, print_json, waiting
from mercer.app.files.description import Table
from mercer.app.files.reading import read_described, warn_of
from mercer.app.files.tables import check_writable, write_table
from mercer.app.projects.new_rows import Unseen, readings_of, unseen_categories
from mercer.exceptions import ModelFileError
from mercer.io import load


def run(model: Path, data: list[Path], out: Path, level: float, as_json: bool, tables: TableOptions = PLAIN) -> None:
    """Load the model, read the data as it asks for them, predict, write."""
    if not out.suffix:
        loaded = load(model)
        if hasattr(loaded, "feature_names_in_") and not hasattr(loaded, "predict_frame"):
            from mercer.app.cli import predict_rows

            predict_rows.run(loaded, data, out, as_json)
            return
    check_writable(out, read=[model, *data])
    workflow = load(model)
    if not hasattr(workflow, "predict_frame"):
        raise ModelFileError(
            f"{str(model)!r} holds a {type(workflow).__name__}: load it in Python. This command takes models that "
            "`mercer fit`, `embed` or `cluster` saved."
        )
    with notes():
        given = read(workflow, data, tables)
        # Coordinates and clusters have no intervals.
        options = {"level": level} if "level" in signature(workflow.predict_frame).parameters else {}
        with waiting("predicting"):
            answer = workflow.predict_frame(given, **options)
    write_table(answer, out, safe_csv=tables.safe_csv)
    unseen = unseen_in(workflow, given)
    if as_json:
        print_json(
            {
                "model": model,
                "data": for_programs(data),
                "rows": len(answer),
                "columns": list(answer.columns),
                "unreadable": given.unreadable if isinstance(given, Table) else {},
                "unseen": {name: found.n_rows for name, found in unseen.items()},
                "out": out,
            }
        )
        return
    console = out_console()
    console.print(f"Predicted {len(answer)} rows of {named(data)} with {model}", soft_wrap=True)
    console.print(f"Columns: {', '.join(answer.columns)}", soft_wrap=True)
    for name, found in unseen.items():
        rows = "1 row has" if found.n_rows == 1 else f"{found.n_rows} rows have"
        console.print(f"Not seen in the fit: {rows} another {name}, such as {found.example!r}", soft_wrap=True)
    console.print(f"Written to {out}", soft_wrap=True)


def read(workflow: Any, data: list[Path], tables: TableOptions = PLAIN) -> Any:
    """Return the table or the images that a workflow was made for, read as those of the fit were."""
    if workflow.reads == "images":
        from mercer.app.files.images import read_images

        return read_images(data[0], workflow.image_shape_)  # brought to the size of those of the fit
    used = [name for name in workflow.columns_ if kinds_of(workflow)[name] not in ("constant", "missing")]
    table = read_described(data, tables.reading(), names=used, readings=readings_of(workflow.readings_))
    warn_of(table.notes)
    return table


def kinds_of(workflow: Any) -> dict[str, str]:
    """Return the kind of each column that a model of a table was fitted on."""
    return encoder_of(workflow).kinds_


def encoder_of(workflow: Any) -> Any:
    """Return what encodes the table of a model."""
    return workflow.model_.encoder_ if hasattr(workflow, "model_") else workflow.encoder_


def unseen_in(workflow: Any, given: Any) -> dict[str, Unseen]:
    """Return how many rows of a table have categories that the fit of a model has not seen, by column."""
    return unseen_categories(encoder_of(workflow), given.frame) if isinstance(given, Table) else {}

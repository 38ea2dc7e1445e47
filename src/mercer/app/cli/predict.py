"""`mercer predict`: answers of a saved model for new rows or images, in a file."""

from inspect import signature
from pathlib import Path
from typing import Any

from mercer.app.cli.options import PLAIN, TableOptions
from mercer.app.cli.output import notes, out_console, print_json, waiting
from mercer.app.files.tables import check_writable, read_table, write_table
from mercer.exceptions import ModelFileError
from mercer.io import load


def run(model: Path, data: Path, out: Path, level: float, as_json: bool, tables: TableOptions = PLAIN) -> None:
    """Load the model, read the data as it asks for them, predict, write."""
    check_writable(out, read=[model, data])
    workflow = load(model)
    if not hasattr(workflow, "predict_frame"):
        raise ModelFileError(
            f"{str(model)!r} holds a {type(workflow).__name__}: load it in Python. This command takes models that "
            "`mercer fit`, `embed` or `cluster` saved."
        )
    with notes():
        given = read(workflow, data, tables.max_mb)
        # Coordinates and clusters have no intervals.
        options = {"level": level} if "level" in signature(workflow.predict_frame).parameters else {}
        with waiting("predicting"):
            answer = workflow.predict_frame(given, **options)
    write_table(answer, out, safe_csv=tables.safe_csv)
    if as_json:
        print_json({"model": model, "data": data, "rows": len(answer), "columns": list(answer.columns), "out": out})
        return
    console = out_console()
    console.print(f"Predicted {len(answer)} rows of {data} with {model}", soft_wrap=True)
    console.print(f"Columns: {', '.join(answer.columns)}", soft_wrap=True)
    console.print(f"Written to {out}", soft_wrap=True)


def read(workflow: Any, data: Path, max_mb: float | None = None) -> Any:
    """Return the table, of at most `max_mb` MiB, or the images that a workflow was made for."""
    if workflow.reads == "images":
        from mercer.app.files.images import read_images

        return read_images(data, workflow.image_shape_)  # brought to the size of those of the fit
    return read_table(data, max_mb=max_mb)

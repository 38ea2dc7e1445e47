"""`mercer predict`: answers of a saved model for new rows or images, written to a file or printed."""

import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import typer

from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import new_table, notes, number, out_console, print_json, waiting
from mercer.app.files.description import Table
from mercer.app.files.reading import read_described, warn_of
from mercer.app.files.tables import check_writable, write_table
from mercer.app.projects.new_rows import Unseen, needed_columns, read_like_fit, readings_of, unseen_categories
from mercer.app.projects.table_prediction import TablePrediction
from mercer.app.projects.why_wrong import explain_answers
from mercer.app.report.words import percent
from mercer.exceptions import ModelFileError, invalid_parameter
from mercer.io import load


def run(
    model: Path,
    data: list[Path],
    out: Path | None,
    level: float,
    as_json: bool,
    tables: TableOptions = PLAIN,
    why: int | None = None,
    context: typer.Context | None = None,
) -> None:
    """Load the model, read the data as the model needs them, predict and write; or explain the answer for one row."""
    if out is not None and not out.suffix:
        loaded = load(model)
        if hasattr(loaded, "feature_names_in_") and not hasattr(loaded, "predict_frame"):
            from mercer.app.cli import predict_rows

            if context is not None:
                predict_rows.check_options(context)
            predict_rows.run(loaded, data, out, as_json)
            return
    if out is not None:
        check_writable(out, read=[model, *data])
    workflow = load(model)
    if not hasattr(workflow, "predict_frame"):
        raise ModelFileError(
            f"{str(model)!r} holds a {type(workflow).__name__}: load it in Python. This command takes models that "
            "`mercer fit`, `embed` or `cluster` saved, and those of `mercer fit --landmarks` only with a new "
            "folder for the answers, such as `--out answers`."
        )
    with notes():
        given = read(workflow, data, tables)
        # Coordinates and clusters have no intervals.
        options = {"level": level} if "level" in signature(workflow.predict_frame).parameters else {}
        with waiting("predicting"):
            answer = workflow.predict_frame(given, **options)
    if why is not None:
        show_why(workflow, given, answer, why, as_json)
        return
    if out is None and not as_json:
        sys.stdout.write(answer.to_csv(index=False))
        return
    if out is not None:
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
                **({} if out is not None else {"predictions": answer.to_dict("list")}),
            }
        )
        return
    console = out_console()
    console.print(f"Predicted {len(answer)} rows of {named(data)} with {model}", soft_wrap=True)
    console.print(f"Columns: {', '.join(answer.columns)}", soft_wrap=True)
    for name, found in unseen.items():
        rows = "1 row has" if found.n_rows == 1 else f"{found.n_rows} rows have"
        console.print(f"{rows} a new value of {name!r}, such as {found.example!r}, not seen in the fit", soft_wrap=True)
    console.print(f"Written to {out}", soft_wrap=True)


def show_why(workflow: Any, given: Any, answer: Any, row: int, as_json: bool) -> None:
    """Print which columns moved the answer for one row, and which training rows counted most."""
    if not isinstance(workflow, TablePrediction):
        raise invalid_parameter("why", row, "a row of a table that a model of `mercer fit` predicts")
    if row >= len(answer):
        raise invalid_parameter("why", row, f"a row from 0 to {len(answer) - 1}")
    frame = read_like_fit(given, workflow.readings_).reindex(columns=workflow.columns_)
    found = explain_answers(workflow.task_, workflow.model_, frame.iloc[[row]], workflow.typical_values_)[0]
    values = {name: answer[name].iloc[row] for name in answer.columns}
    if as_json:
        print_json({"row": row, "answer": values, **found})
        return
    console = out_console()
    console.print(f"Row {row}: {workflow.target_} {cell(values.pop('prediction'))}", style="bold")
    of_class = workflow.task_ == "classification"
    told = {name: percent(float(value)) if of_class else cell(value) for name, value in values.items()}
    console.print(", ".join(f"{name} {text}" for name, text in told.items()))
    moves = "moves the probability by" if of_class else "moves the answer by"
    table = new_table("column", "here", "typical", moves)
    for entry in found["columns"]:
        moved = f"{100 * entry['moves_by']:+.1f}%" if of_class else number(entry["moves_by"])
        table.add_row(entry["column"], entry["value"], entry["typical"], moved)
    console.print(table)
    like = ", ".join(str(entry["row"]) for entry in found["like"])
    console.print(f"The training rows that counted most, the first being row 0: {like}.")


def cell(value: Any) -> str:
    """Return a value of an answer as text: numbers with three significant digits, classes unchanged."""
    return number(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def read(workflow: Any, data: list[Path], tables: TableOptions = PLAIN) -> Any:
    """Return a table or images, read in the same way as those that the workflow was fitted on."""
    if workflow.reads == "images":
        from mercer.app.files.images import read_images

        return read_images(data[0], workflow.image_shape_)  # resized to the shape of the images of the fit
    needed = needed_columns(workflow.columns_, kinds_of(workflow))
    table = read_described(data, tables.reading(), names=needed, readings=readings_of(workflow.readings_))
    warn_of(table.notes)
    return table


def kinds_of(workflow: Any) -> dict[str, str]:
    """Return the kind of each column of the table that a model was fitted on."""
    return encoder_of(workflow).kinds_


def encoder_of(workflow: Any) -> Any:
    """Return the `TableEncoder` of a model of a table."""
    return workflow.model_.encoder_ if hasattr(workflow, "model_") else workflow.encoder_


def unseen_in(workflow: Any, given: Any) -> dict[str, Unseen]:
    """Return for each column how many rows of a table have categories that the fit has not seen."""
    return unseen_categories(encoder_of(workflow), given.frame) if isinstance(given, Table) else {}

"""`mercer predict` for models of `mercer fit --landmarks`: predict in parts, and write each part as a Parquet file."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from mercer.app.cli.options import for_programs, named
from mercer.app.cli.output import notes, out_console, print_json, progress
from mercer.app.cli.unread_options import refuse_unread
from mercer.exceptions import DataFileError
from mercer.rows import open_rows
from mercer.storage.atomic import write_atomically

ROWS_A_FILE = 262_144
# The parameters of `mercer predict` that are read here.
READ = {"out", "as_json", "debug"}


def check_options(context: typer.Context) -> None:
    """Raise an error if the user gave an option of `mercer predict` that is not read here."""
    refuse_unread(context, READ, "for a model of `mercer fit --landmarks`")


def run(model: Any, data: list[Path], out: Path, as_json: bool) -> None:
    """Predict the rows of files part by part, and write a file for each part into a new folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if out.exists():
        raise DataFileError(f"out={str(out)!r} exists already: answers for many rows are written to a new folder.")
    rows = open_rows(data, list(model.feature_names_in_))
    out.mkdir(parents=True)
    bounds = range(0, len(rows), ROWS_A_FILE)
    columns: list[str] = []
    with notes(), progress() as bar:
        task = bar.add_task("predicting", total=len(bounds))
        for place, start in enumerate(bounds):
            part = rows.between(slice(start, min(start + ROWS_A_FILE, len(rows))))
            answer = answers_of(model, part)
            columns = list(answer)
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table(answer), sink)
            write_atomically(out / f"part-{place:05}.parquet", [sink.getvalue().to_pybytes()])
            bar.advance(task)
    if as_json:
        print_json({"data": for_programs(data), "rows": len(rows), "columns": columns, "out": out})
        return
    console = out_console()
    console.print(f"Predicted {len(rows)} rows of {named(data)}", soft_wrap=True)
    console.print(f"Columns: {', '.join(columns)}", soft_wrap=True)
    console.print(f"Written to {out}", soft_wrap=True)


def answers_of(model: Any, rows: Any) -> dict[str, np.ndarray]:
    """Return the columns of answers: the prediction and, for classes, the probability of each."""
    if not hasattr(model, "classes_"):
        return {"prediction": model.predict(rows)}
    probabilities = model.predict_proba(rows)
    columns = {"prediction": model.classes_[probabilities.argmax(axis=1)]}
    return columns | {f"p({label})": probabilities[:, i] for i, label in enumerate(model.classes_)}

"""Arguments and options that several commands share, with their help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ENDINGS = "CSV, TSV, Parquet, Feather, Excel or JSON lines, by the ending of the name; - is standard input"
Table = Annotated[
    list[Path], typer.Argument(metavar="TABLE", help=f"A table, or several with the same columns: {ENDINGS}.")
]
Data = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", help=f"A folder of images, a table, or several with the same columns: {ENDINGS}."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kinds",
        metavar="COLUMN=KIND,...",
        help="How to read columns: number, category, text, date, or date:%d/%m/%Y.",
        show_default="found out",
    ),
]
HasHeader = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row has the column names.", show_default="found out"),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="The sheet of an Excel file: its name, or its number from 1.", show_default="the first with data"
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="The encoding of a text file, such as utf-16 or latin-1.", show_default="found out"),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="MARK", help="The decimal mark in a text file: . or ,", show_default="found out")
]
Out = Annotated[
    Path, typer.Option(help="The file to write: CSV, TSV, Parquet, Feather or Excel, by the ending of its name.")
]
Model = Annotated[Path, typer.Argument(help="A model that `mercer fit`, `embed` or `cluster` saved.")]
Save = Annotated[
    Path | None, typer.Option("--save", help="Also save the model to this file, for new data and for a report.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column to leave out, such as an identifier. Can be given several times."),
]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, for programs.")]
MaxMb = Annotated[
    float | None,
    typer.Option(
        "--max-mb",
        metavar="MIB",
        min=1,
        help="How many MiB the table may take.",
        show_default="1024, less for packed files",
    ),
]
SafeCsv = Annotated[
    bool,
    typer.Option("--safe-csv", help="In CSV, put an apostrophe before texts that spreadsheets take for formulas."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class ModelName(StrEnum):
    """The models that `mercer fit` can fit."""

    auto = "auto"
    rfm = "rfm"
    gp = "gp"
    discriminant = "discriminant"


class TaskName(StrEnum):
    """The tasks that `mercer fit` can solve."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class MetricName(StrEnum):
    """The scores by which `mercer fit` can judge a model."""

    auto = "auto"
    rmse = "rmse"
    mae = "mae"
    r2 = "r2"
    log_loss = "log_loss"
    accuracy = "accuracy"
    balanced_accuracy = "balanced_accuracy"
    auc = "auc"
    average_precision = "average_precision"

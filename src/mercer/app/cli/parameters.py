"""What commands take: arguments and options that several of them share, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ENDINGS = "CSV, TSV, Parquet, Feather, Excel or JSON lines, by the ending; - is standard input"
Table = Annotated[
    list[Path], typer.Argument(metavar="TABLE", help=f"A table, or several of the same columns: {ENDINGS}.")
]
Data = Annotated[
    list[Path], typer.Argument(metavar="DATA", help=f"A folder of images; or a table, or several: {ENDINGS}.")
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kinds", metavar="COLUMN=KIND,...", help="Of columns: number, category, text, date, date:%d/%m/%Y."),
]
HasHeader = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row has the names of the columns; else found out."),
]
Sheet = Annotated[str | None, typer.Option(help="Of an Excel file: the name of the sheet, or its number from 1.")]
Encoding = Annotated[str | None, typer.Option(help="Of a text, such as utf-16 or latin-1; else found out.")]
Decimal = Annotated[str | None, typer.Option(metavar="MARK", help="The decimal mark of numbers in a text: . or ,")]
Out = Annotated[Path, typer.Option(help="The file to write: CSV, TSV, Parquet, Feather or Excel, by its ending.")]
Model = Annotated[Path, typer.Argument(help="A model that `mercer fit`, `embed` or `cluster` saved.")]
Save = Annotated[Path | None, typer.Option("--save", help="Also save the model, for new data and for a report.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="A column to leave out, such as an identifier.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
MaxMb = Annotated[
    float | None,
    typer.Option("--max-mb", metavar="MIB", min=1, help="MiB that the table may take; 1024, packed ones less."),
]
SafeCsv = Annotated[
    bool, typer.Option("--safe-csv", help="In CSV, an apostrophe before texts that spreadsheets take for formulas.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class ModelName(StrEnum):
    """What `mercer fit` can fit."""

    auto = "auto"
    rfm = "rfm"
    gp = "gp"
    discriminant = "discriminant"


class TaskName(StrEnum):
    """What `mercer fit` takes the target for."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class MetricName(StrEnum):
    """What `mercer fit` judges a model by."""

    auto = "auto"
    rmse = "rmse"
    mae = "mae"
    r2 = "r2"
    log_loss = "log_loss"
    accuracy = "accuracy"
    balanced_accuracy = "balanced_accuracy"
    auc = "auc"
    average_precision = "average_precision"

"""Read a column of a file, whether it comes as texts or with a type: its kind with the reason, and its values."""

from dataclasses import replace
from datetime import date
from typing import Any

from mercer.app.files.column import Column, ColumnReading
from mercer.app.files.columns_of_texts import Marks, read_texts
from mercer.exceptions import DataFileError, invalid_parameter, shown
from mercer.tables.frames import optional
from mercer.tables.kinds import KINDS
from mercer.tables.readers import as_text


def read_column(
    name: str,
    column: Any,
    wanted: ColumnReading | str | None = None,
    decimal: str | None = None,
    commas_are_decimal: bool = False,
) -> Column:
    """Return a column of a file with its kind, which is found in its values, asked for, or that of a fit.

    Parameters
    ----------
    name : str
    column : Series
        Texts, objects, or values of one type.
    wanted : ColumnReading, str or None
        How a fit has read the column, or the kind that is asked for; dates may have a format, as in "date:%d/%m/%Y".
    decimal : {".", ","} or None
        The decimal mark to use if the column does not show it; None if the file does not show it either.
    commas_are_decimal : bool, default=False
        How commas are read if nothing shows it: as decimal marks, or as separators of thousands.
    """
    asked = _asked(name, wanted)
    if column.dtype.kind in "biufmM" or str(column.dtype) == "category" or str(column.dtype).startswith("period"):
        typed = _typed(name, column, asked)
        if typed is not None:
            return typed
    marks = Marks(decimal, commas_are_decimal)
    if column.dtype.kind == "O" and str(column.dtype) != "object":  # one of pandas' types for texts
        return _with_note_of_unit(read_texts(name, column, asked, marks), wanted)
    values = column.astype(object)
    present = values.dropna()
    if len(present) and all(isinstance(value, date) for value in present) and _is_open(asked, "date"):
        several_zones = len({getattr(value, "tzinfo", None) for value in present}) > 1
        dates = optional("pandas", "a table").to_datetime(values, utc=several_zones)
        return Column(name, dates.rename(name), ColumnReading("date"), "dates", int(dates.isna().sum()))
    return _with_note_of_unit(read_texts(name, _as_texts(name, values), asked, marks), wanted)


def _with_note_of_unit(column: Column, wanted: ColumnReading | str | None) -> Column:
    """Return a column with a note if its numbers have another unit than in the fit."""
    if not isinstance(wanted, ColumnReading) or column.reading.kind != "number":
        return column
    before, now = wanted.unit, column.reading.unit
    if before.casefold() == now.casefold():
        return column
    note = f"column {column.name!r} had the unit {before or 'none'!r} in the fit, and has {now or 'none'!r} here."
    return replace(column, notes=[*column.notes, note])


def _typed(name: str, column: Any, asked: ColumnReading | None) -> Column | None:
    """Return a column with the kind of its type; None if another kind is asked for, so that it is read as texts."""
    letter = column.dtype.kind
    is_date = letter == "M" or str(column.dtype).startswith("period")
    kind = "date" if is_date else "number" if letter in "biufm" else "category"
    n_missing = int(column.isna().sum())
    if n_missing == len(column) and asked is None:
        return Column(name, column, ColumnReading("missing"), "no values", n_missing)
    if not _is_open(asked, kind) and not (kind == "category" and asked is not None and asked.kind == "text"):
        return None
    reading = ColumnReading(kind if asked is None else asked.kind)
    reason = {"number": "numbers in the file", "date": "dates in the file", "category": "categories in the file"}[kind]
    if letter == "b" or str(column.dtype) == "boolean":
        reason = "true counts as 1, false as 0"
    return Column(name, column, reading, reason, n_missing)


def _is_open(asked: ColumnReading | None, kind: str) -> bool:
    return asked is None or asked.kind in (kind, "missing")


def _asked(name: str, wanted: ColumnReading | str | None) -> ColumnReading | None:
    if wanted is None or isinstance(wanted, ColumnReading):
        return wanted
    kind, _, form = wanted.partition(":")
    if kind not in KINDS or (form and kind != "date"):
        raise invalid_parameter(f"kinds[{name!r}]", wanted, [*KINDS, "date:%d/%m/%Y"])
    return ColumnReading(kind, [form] if form else [])


def _as_texts(name: str, values: Any) -> Any:
    """Return a column of objects as texts, with dates in ISO 8601."""

    def text_of(value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (list, dict, set, tuple)):
            raise DataFileError(
                f"column {name!r} holds a {type(value).__name__} in some row, such as {shown(value, 60)}: "
                "a table has one value in each cell."
            )
        return str(value) if isinstance(value, date) else as_text(value)

    return values.where(values.notna(), None).map(text_of)

"""Read a table from files of any format as typed columns, with a description of how it was read."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mercer.app.files.column import ColumnReading
from mercer.app.files.columns import read_column
from mercer.app.files.columns_of_texts import decimal_evidence, with_decimal_points
from mercer.app.files.description import FileFacts, Table
from mercer.app.files.limits import most_bytes
from mercer.app.files.named_tables import RawTable
from mercer.app.files.raw_tables import read_raw
from mercer.app.files.sources import STANDARD_INPUT, source_of
from mercer.exceptions import DataFileError, DataWarning, invalid_parameter
from mercer.tables.frames import as_frame, column_names, listed, nearest, optional

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class ReadOptions(NamedTuple):
    """How to read a file, where the user has said so. What is None is found out.

    Attributes
    ----------
    kinds : dict of str or None
        The kinds of some columns: "number", "date", "category", "text", or "date:%d/%m/%Y" with a format.
    header : bool or None
        Whether the first row has the names of the columns.
    sheet : str or None
        The sheet of an Excel file: its name, or its number from 1.
    encoding : str or None
    decimal : {".", ","} or None
        The decimal mark.
    max_mb : float or None
        MiB that the table may take, as text and as numbers of eight bytes. None is 1024, but for a compressed file at
        most twenty times its size, or 64.
    """

    kinds: Mapping[str, str] | None = None
    header: bool | None = None
    sheet: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    max_mb: float | None = None


DEFAULTS = ReadOptions()


def read_described(
    paths: Paths,
    options: ReadOptions = DEFAULTS,
    *,
    names: Sequence[str] = (),
    readings: Mapping[str, ColumnReading] | None = None,
) -> Table:
    """Return the table in a file, or in several files of the same columns, with a description of what was read.

    Parameters
    ----------
    paths : str, path or sequence of them
        CSV, TSV and other texts with columns, Parquet, Feather, Excel or JSON lines, by the ending of the name. Texts
        may be compressed (.gz, .bz2, .xz, .zip). "-" is standard input.
    options : ReadOptions
        How to read the file, where this should not be found out.
    names : sequence of str
        Columns that the table must have, such as the target. A first row that contains them has the names.
    readings : dict of ColumnReading, optional
        How a fit has read columns, which are then read in the same way. All others are found out.

    Raises
    ------
    FileNotFoundError
        If there is no such file. The message names the files with the most similar names.
    DataFileError
        If the file does not have the format that its ending says, is a pipe or a device, is larger than the limit, has
        no rows, has two columns of the same name, or has rows with more fields than there are names.
    """
    if options.decimal not in (None, ".", ","):
        raise invalid_parameter("decimal", options.decimal, [".", ","])
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise invalid_parameter("paths", paths, "a file or several")
    if sum(os.fspath(path) == STANDARD_INPUT for path in several) > 1:
        raise invalid_parameter("paths", paths, "files of which at most one is '-', standard input")
    raws = [read_raw(source_of(path, most_bytes(options.max_mb)), options, names) for path in several]
    frame = _together(raws)
    commas_are_decimal = all(raw.facts.delimiter == "semicolons" for raw in raws)
    return _typed(frame, options, readings or {}, [raw.facts for raw in raws], commas_are_decimal)


def as_table(
    data: Any, kinds: Mapping[str, str] | None = None, readings: Mapping[str, ColumnReading] | None = None
) -> Table:
    """Return a data frame of any library as a table with a kind for each column. A Table is returned unchanged.

    Parameters
    ----------
    data : Table or data frame
    kinds : dict of str, optional
        The kinds of some columns, where `data` is a data frame.
    readings : dict of ColumnReading, optional
        How a fit has read columns.
    """
    if isinstance(data, Table):
        return data
    frame = as_frame(data)
    if frame is None:
        raise invalid_parameter("frame", type(data).__name__, "a data frame")
    frame = frame.set_axis(column_names(frame), axis=1)
    return _typed(frame, ReadOptions(kinds=kinds), readings or {}, [], False)


def warn_of(notes: Iterable[str], stacklevel: int = 3) -> None:
    """Give each note as a warning."""
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=stacklevel)


def _typed(
    frame: Any,
    options: ReadOptions,
    readings: Mapping[str, ColumnReading],
    files: list[FileFacts],
    commas_are_decimal: bool,
) -> Table:
    kinds = dict(options.kinds or {})
    for name in kinds:
        if name not in frame.columns:
            there = [str(other) for other in frame.columns]
            raise DataFileError(
                f"--kinds names the column {name!r}{nearest(name, there)}, but the table has {listed(there)}."
            )
    decimal = options.decimal or decimal_evidence(_texts_of(frame))
    columns = [
        read_column(name, frame[name], kinds.get(name, readings.get(name)), decimal, commas_are_decimal)
        for name in frame.columns
    ]
    pandas = optional("pandas", "reading tables", "files")
    typed = pandas.DataFrame({column.name: column.values for column in columns}, index=frame.index)
    return Table(typed, columns, files, frozenset(kinds))


def _together(raws: Sequence[RawTable]) -> Any:
    """Return the rows of several files one below the other. All must have the same columns, in any order."""
    first = raws[0]
    for other in raws[1:]:
        missing = [name for name in first.frame.columns if name not in set(other.frame.columns)]
        extra = [name for name in other.frame.columns if name not in set(first.frame.columns)]
        if missing or extra:
            what = f"lacks {listed(missing)}" if missing else f"also has {listed(extra)}"
            raise DataFileError(
                f"{other.facts.name!r} and {first.facts.name!r} have different columns: the first {what}."
            )
    if len(raws) == 1:
        return first.frame
    frames = [raw.frame[list(first.frame.columns)] for raw in raws]
    marks = [decimal_evidence(_texts_of(frame)) for frame in frames]
    if {".", ","} <= set(marks):  # files may differ in the decimal mark, but a column must have one
        frames = [
            frame.assign(**{text.name: with_decimal_points(text) for text in _texts_of(frame)})
            if mark == ","
            else frame
            for frame, mark in zip(frames, marks, strict=True)
        ]
    return optional("pandas", "reading tables", "files").concat(frames, ignore_index=True)


def _texts_of(frame: Any) -> list[Any]:
    return [frame[name] for name in frame.columns if frame[name].dtype.kind == "O"]

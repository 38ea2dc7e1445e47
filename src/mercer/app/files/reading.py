"""One reader for tables: from a file of any format to typed columns, with a description of what was done."""

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
    """What a person may say about a file that is not to be found out.

    Attributes
    ----------
    kinds : dict of str
        The kinds of some columns: "number", "date", "category", "text", or "date:%d/%m/%Y" with a format.
    header : bool or None
        Whether the first row has the names of the columns.
    sheet : str or None
        Of an Excel file: its name, or its number from 1.
    encoding : str or None
    decimal : {".", ","} or None
    max_mb : float or None
        MiB that the table may take, as text and as numbers of eight bytes. None is 1024; of a packed file twenty times
        its size, or 64.
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
        CSV, TSV and other texts with columns, Parquet, Feather, Excel, JSON lines, by their ending; texts may be packed
        (.gz, .bz2, .xz, .zip). "-" is standard input.
    options : ReadOptions
        What is not to be found out.
    names : sequence of str
        Columns that the table must have, such as the target: a first row with them has the names.
    readings : dict of ColumnReading, optional
        How a fit has read columns: they are read alike. Others are found out.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the nearest names in its folder are given.
    DataFileError
        If the file is not what its ending says, or is a pipe or a device, or larger than the limit, or holds no rows,
        or two columns of one name, or more fields in its rows than names.
    """
    if options.decimal not in (None, ".", ","):
        raise invalid_parameter("decimal", options.decimal, [".", ","])
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise invalid_parameter("paths", paths, "a file or several")
    if sum(os.fspath(path) == STANDARD_INPUT for path in several) > 1:
        raise invalid_parameter("paths", paths, "such that '-', standard input, comes once only")
    raws = [read_raw(source_of(path, most_bytes(options.max_mb)), options, names) for path in several]
    frame = _together(raws)
    commas_are_decimal = all(raw.facts.delimiter == "semicolons" for raw in raws)
    return _typed(frame, options, readings or {}, [raw.facts for raw in raws], commas_are_decimal)


def as_table(
    data: Any, kinds: Mapping[str, str] | None = None, readings: Mapping[str, ColumnReading] | None = None
) -> Table:
    """Return a data frame of any library as a table whose columns have kinds; one that is a table already as it is.

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
                f"--kinds names the column {name!r}{nearest(name, there)}, and the table has {listed(there)}."
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
    """Return the rows of several files one below the other; all must have the same columns, in any order."""
    first = raws[0]
    for other in raws[1:]:
        missing = [name for name in first.frame.columns if name not in set(other.frame.columns)]
        extra = [name for name in other.frame.columns if name not in set(first.frame.columns)]
        if missing or extra:
            what = f"lacks {listed(missing)}" if missing else f"has {listed(extra)} besides"
            raise DataFileError(
                f"{other.facts.name!r} and {first.facts.name!r} have different columns: the first {what}."
            )
    if len(raws) == 1:
        return first.frame
    frames = [raw.frame[list(first.frame.columns)] for raw in raws]
    marks = [decimal_evidence(_texts_of(frame)) for frame in frames]
    if {".", ","} <= set(marks):  # each file may have its own, but a column has one
        frames = [
            frame.assign(**{text.name: with_decimal_points(text) for text in _texts_of(frame)})
            if mark == ","
            else frame
            for frame, mark in zip(frames, marks, strict=True)
        ]
    return optional("pandas", "reading tables", "files").concat(frames, ignore_index=True)


def _texts_of(frame: Any) -> list[Any]:
    return [frame[name] for name in frame.columns if frame[name].dtype.kind == "O"]

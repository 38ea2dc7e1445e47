"""Read new rows in the same way as those of the fit, and find what the fit has not seen in them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mercer.app.files.column import FEW_VALUES, ColumnReading
from mercer.app.files.description import Table
from mercer.app.files.reading import as_table, warn_of
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_means import LevelMeans
from mercer.tables.readers import Categories, as_texts

# Columns that had one of these kinds in the fit are not used by a model.
UNUSED_KINDS = ("constant", "missing")


class Unseen(NamedTuple):
    """How many rows have a category that the fit did not see, and one such category."""

    n_rows: int
    example: str


def table_of_fit(data: Any) -> Table:
    """Return a data frame as a table with a kind for each column, and warn of what is odd. A Table is not changed."""
    table = as_table(data)
    if table is not data:
        warn_of(table.notes, stacklevel=4)
    return table


def saved_readings(table: Table, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return how columns were read as plain values, which a model keeps."""
    readings = table.readings
    return {name: readings[name].as_dict() for name in names}


def readings_of(saved: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnReading]:
    """Return how columns are to be read, from the plain values that a model has kept."""
    return {name: ColumnReading(**values) for name, values in saved.items()}


def kinds_for_encoder(table: Table, names: list[str], *, has_target: bool) -> dict[str, str]:
    """Return the kinds of columns for an encoder, so that every fit on a part of the rows uses the same kinds.

    Parameters
    ----------
    table : Table
    names : list of str
        The inputs.
    has_target : bool
        Whether there is a target. Without one, categories with many levels are encoded as text, since a column for each
        level would be too many.
    """
    kinds = {name: reading.kind for name, reading in table.readings.items() if name in set(names)}
    for name, kind in kinds.items():
        if kind == "category" and not has_target and table.frame[name].nunique() >= FEW_VALUES:
            kinds[name] = "text"
    return {name: kind for name, kind in kinds.items() if kind != "missing"}


def needed_columns(names: Iterable[str], kinds: Mapping[str, str]) -> list[str]:
    """Return the inputs that a model needs to predict: those that were constant or missing in the fit are not used."""
    return [name for name in names if kinds[name] not in UNUSED_KINDS]


def read_like_fit(data: Any, saved: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a data frame whose columns are read as those of the fit, and warn of values that cannot be read.

    Parameters
    ----------
    data : Table or data frame
        A Table has been read in this way already.
    saved : dict
        How the columns of the fit were read.
    """
    table = as_table(data, readings=readings_of(saved))
    if table is not data:
        warn_of(table.notes, stacklevel=4)
    return table.frame


def unseen_categories(encoder: TableEncoder, frame: Any) -> dict[str, Unseen]:
    """Return how many rows have a category that the fit did not see, for each column in which there are such rows.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    frame : data frame
        New rows, with the columns of the fit.
    """
    levels: dict[str, set[str]] = {}
    for encoded in encoder.columns_:
        # A column can have two readers: the means of all levels, and indicators of the frequent ones.
        if isinstance(encoded.reader, (Categories, LevelMeans)):
            levels.setdefault(encoded.name, set()).update(encoded.reader.levels)
    found: dict[str, Unseen] = {}
    for name, known in levels.items():
        if name in frame.columns:
            new = [text for text in as_texts(frame[name]) if text is not None and text not in known]
            if new:
                found[name] = Unseen(len(new), str(new[0]))
    return found

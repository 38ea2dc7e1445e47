"""How the rows of a table are read for a model, and what in new rows the fit has not seen."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mercer.app.files.column import FEW_VALUES, ColumnReading
from mercer.app.files.description import Table
from mercer.app.files.reading import as_table, warn_of
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_means import LevelMeans
from mercer.tables.readers import Categories, as_texts


class Unseen(NamedTuple):
    """How many rows have a category that the fit did not see, and one such category."""

    n_rows: int
    example: str


def table_of_fit(data: Any) -> Table:
    """Return a data frame as a table whose columns have kinds, with warnings of what is odd; a Table as it is."""
    table = as_table(data)
    if table is not data:
        warn_of(table.notes, stacklevel=4)
    return table


def saved_readings(table: Table, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return how columns were read, in plain values that a model keeps."""
    readings = table.readings
    return {name: readings[name].as_dict() for name in names}


def readings_of(saved: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnReading]:
    """Return how columns are to be read, from what a model has kept."""
    return {name: ColumnReading(**values) for name, values in saved.items()}


def kinds_for_encoder(table: Table, names: list[str], *, has_target: bool) -> dict[str, str]:
    """Return the kinds that an encoder is told, so that every fit on some of the rows takes columns for the same.

    Parameters
    ----------
    table : Table
    names : list of str
        The inputs.
    has_target : bool
        Without a target, categories of many levels are placed by their text: a column for each would be too many.
    """
    kinds = {name: reading.kind for name, reading in table.readings.items() if name in set(names)}
    for name, kind in kinds.items():
        if kind == "category" and not has_target and table.frame[name].nunique() >= FEW_VALUES:
            kinds[name] = "text"
    return {name: kind for name, kind in kinds.items() if kind != "missing"}


def read_like_fit(data: Any, saved: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a data frame whose columns are read as those of the fit; what cannot be read is said in warnings.

    Parameters
    ----------
    data : Table or data frame
        A table was read so already.
    saved : dict
        How the columns of the fit were read.
    """
    table = as_table(data, readings=readings_of(saved))
    if table is not data:
        warn_of(table.notes, stacklevel=4)
    return table.frame


def unseen_categories(encoder: TableEncoder, frame: Any) -> dict[str, Unseen]:
    """Return for each column of categories how many rows have one that the fit did not see, where there are some.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    frame : data frame
        With the columns of the fit.
    """
    levels: dict[str, set[str]] = {}
    for encoded in encoder.columns_:
        # Beside the means of all levels, the frequent ones have columns of their own.
        if isinstance(encoded.reader, (Categories, LevelMeans)):
            levels.setdefault(encoded.name, set()).update(encoded.reader.levels)
    found: dict[str, Unseen] = {}
    for name, known in levels.items():
        if name in frame.columns:
            new = [text for text in as_texts(frame[name]) if text is not None and text not in known]
            if new:
                found[name] = Unseen(len(new), str(new[0]))
    return found

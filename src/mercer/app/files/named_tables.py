"""Find the table in a grid of cells: its names, and what is above, below and beside it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer.app.files.description import FileFacts
from mercer.app.files.headers import Header, find_header
from mercer.exceptions import DataFileError, shown

if TYPE_CHECKING:
    from mercer.app.files.reading import ReadOptions

TOTALS = frozenset(["total", "totals", "grand total", "sum", "subtotal", "summe", "gesamt"])
# At most this many rows below a table are left out.
MOST_BELOW = 5
# The beginning of the names of columns without a name, as in pandas.
UNNAMED = "Unnamed: "


class RawTable(NamedTuple):
    """The named columns of one file, and how the file was read."""

    frame: Any
    facts: FileFacts


def named_table(
    grid: Any, records: list[list[Any]], facts: FileFacts, options: "ReadOptions", known: Sequence[str]
) -> RawTable:
    """Find the names of the columns in a grid of cells, and leave out what is above and below the table.

    Parameters
    ----------
    grid : data frame
        All rows of the file, with numbers as names of the columns.
    records : list of lists
        The first rows, with the lengths that they have in the file.
    facts : FileFacts
    options : ReadOptions
    known : sequence of str
        Names that the table must have.
    """
    width = grid.shape[1]
    rows = [[*record, *[""] * (width - len(record))] for record in records]
    header = find_header(rows, known, options.header)
    if header.has_names:
        names = [_name(cell, i) for i, cell in enumerate(rows[header.n_above])]
    else:
        names = [f"column_{i + 1}" for i in range(width)]
    body = grid.iloc[header.n_above + header.has_names :]
    kept = _columns_with_values(body, names, records, header, facts)
    body, n_blank, below = _without_rows_below(body[kept].set_axis([names[i] for i in kept], axis=1))
    above = [" ".join(str(cell) for cell in row if str(cell or "").strip()) for row in rows[: header.n_above]]
    notes = [*facts.notes, *_notes_on_rows(facts.name, above, below, n_blank)]
    if not header.has_names and options.header is None:
        first = shown(", ".join(str(cell) for cell in rows[header.n_above]), 120)
        notes.append(
            f"{shown(facts.name)} has no names in its first row, {first}: {header.reason}. Columns are called "
            f"{names[0]} to {names[-1]}; use --header if the first row has the names."
        )
    facts = replace(facts, header=header.has_names, header_reason=header.reason, above=above, below=below, notes=notes)
    return RawTable(body.reset_index(drop=True), facts)


def _columns_with_values(
    body: Any, names: list[str], records: list[list[Any]], header: Header, facts: FileFacts
) -> list[int]:
    """Return the columns with a name or values; raise if rows have more fields than names, or if names repeat."""
    if not header.has_names:
        return list(range(len(names)))
    n_names = len(records[header.n_above])
    empty = {i for i, name in enumerate(names) if name.startswith(UNNAMED) and _is_empty(body[i]).all()}
    if any(i not in empty for i in range(n_names, len(names))):
        row = next((record for record in records[header.n_above + 1 :] if len(record) > n_names), [])
        first = shown(records[header.n_above], 120)
        raise not_of_its_kind(
            facts, f"its rows have more fields than its first line has names, such as {shown(row, 120)} below {first}."
        )
    kept = [i for i in range(len(names)) if i not in empty]
    check_names([names[i] for i in kept if not names[i].startswith(UNNAMED)], facts.name)
    return kept


def _notes_on_rows(name: str, above: list[str], below: list[str], n_blank: int) -> list[str]:
    """Return notes on rows that are not part of the table."""
    notes = [
        f"{shown(name)}: left out {_rows(len(lines))} {where} the table, such as {shown(lines[0], 80)}."
        for where, lines in (("above", above), ("below", below))
        if lines
    ]
    return [*notes, f"{shown(name)}: left out {_rows(n_blank)} without any value."] if n_blank else notes


def _name(cell: Any, place: int) -> str:
    text = "" if cell is None or cell != cell else str(cell).strip()
    return text or f"{UNNAMED}{place}"


def _is_empty(column: Any) -> Any:
    if column.dtype.kind == "O" and str(column.dtype) != "object":
        return column.isna() | (column.str.strip() == "")
    return column.isna() | column.map(lambda value: isinstance(value, str) and not value.strip()).astype(bool)


def _without_rows_below(body: Any) -> tuple[Any, int, list[str]]:
    """Return the table without empty rows and without notes and totals at its end, and what was left out."""
    empty = body.apply(_is_empty) if body.shape[1] else body.isna()
    n_filled = body.shape[1] - empty.sum(axis=1).to_numpy()
    keep = n_filled > 0
    n_blank = int((~keep).sum())
    rows = np.flatnonzero(keep).tolist()
    below: list[str] = []
    while len(rows) > 3 and len(below) < MOST_BELOW and body.shape[1] > 1:
        last = rows[-1]
        cells = [str(cell).strip() for cell in body.iloc[last] if cell is not None and str(cell).strip()]
        is_total = cells[0].rstrip(":").casefold() in TOTALS and not empty.iloc[last, 0]
        is_note = body.shape[1] > 2 and n_filled[last] == 1 and not empty.iloc[last, 0]
        is_note = is_note and sum(n_filled[i] == 1 for i in rows[-50:-MOST_BELOW]) == 0 and n_filled[rows[0]] > 1
        if not (is_total or is_note):
            break
        below.insert(0, " ".join(cells))
        rows.pop()
    return (body if len(rows) == len(body) else body.iloc[rows]), n_blank, below


def check_names(names: list[str], path: str) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataFileError(f"{path!r} has two columns {shown(name)}: each column needs a name of its own.")
        seen.add(name)


def not_of_its_kind(facts: FileFacts, reason: str) -> DataFileError:
    """Return the error for a file whose content does not have its format."""
    return DataFileError(f"{shown(facts.name)} cannot be read as {facts.format}: {reason}")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"

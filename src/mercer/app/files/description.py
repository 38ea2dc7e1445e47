"""How a table was read: the format of its files, where the names are, the kind of each column, and what is odd."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mercer.app.files.column import Column, ColumnReading


@dataclass(frozen=True)
class FileFacts:
    """How one file was read.

    Attributes
    ----------
    name : str
    format : str
    n_rows : int
    encoding, delimiter : str or None
        Of a text file, in words.
    header : bool or None
        Whether the first row has the names of the columns; None if the format stores names separately.
    header_reason : str
    above, below : list of str
        Lines above and below the table that are not rows of it.
    sheet : str or None
        The sheet of an Excel file that was read.
    sheets : list of str
        All sheets of an Excel file.
    notes : list of str
        What the user should know.
    """

    name: str
    format: str
    n_rows: int = 0
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    header_reason: str = ""
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    sheet: str | None = None
    sheets: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def in_words(self) -> str:
        """Return a short description, such as "CSV, semicolons, UTF-8, names in the first row"."""
        parts = [self.format, self.delimiter, self.encoding, None if self.sheet is None else f"sheet {self.sheet!r}"]
        if self.header is not None:
            parts.append("names in the first row" if self.header else "no names in the first row")
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class Table:
    """A table with the description of how it was read.

    Attributes
    ----------
    frame : data frame
        Numbers, dates, booleans and strings.
    columns : list of Column
    files : list of FileFacts
        Empty for a data frame that was not read from a file.
    asked : set of str
        Columns whose kinds the user has given.
    """

    frame: Any
    columns: list[Column]
    files: list[FileFacts] = field(default_factory=list)
    asked: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def readings(self) -> dict[str, ColumnReading]:
        """How each column was read, for a model to keep."""
        return {column.name: column.reading for column in self.columns}

    @property
    def notes(self) -> list[str]:
        """What the user should know before trusting the table."""
        parts: list[FileFacts | Column] = [*self.files, *self.columns]
        return [note for part in parts for note in part.notes]

    @property
    def unreadable(self) -> dict[str, int]:
        """How many values could not be read, for each column in which there are some."""
        return {column.name: column.n_unreadable for column in self.columns if column.n_unreadable}

    def describe(self) -> dict[str, Any]:
        """Return everything that is known about how the table was read, as plain values."""
        return {
            "rows": len(self.frame),
            "files": [
                {
                    "name": facts.name,
                    "format": facts.format,
                    "rows": facts.n_rows,
                    "encoding": facts.encoding,
                    "delimiter": facts.delimiter,
                    "header": facts.header,
                    "header_reason": facts.header_reason,
                    "above": facts.above,
                    "below": facts.below,
                    "sheet": facts.sheet,
                    "sheets": facts.sheets,
                }
                for facts in self.files
            ],
            "columns": [
                {
                    "name": column.name,
                    **column.reading.as_dict(),
                    "reason": column.reason,
                    "missing": column.n_missing,
                    "unreadable": column.n_unreadable,
                    "examples": [{"row": row, "value": text} for row, text in column.examples],
                    "distinct": int(column.values.nunique()),
                    "values": values_in_words(column),
                }
                for column in self.columns
            ],
            "notes": self.notes,
        }


def values_in_words(column: Column) -> str:
    """Return a summary of the values of a column: the smallest and the largest, or the most frequent ones."""
    present = column.values.dropna()
    kind = column.reading.kind
    if not len(present):
        return ""
    if present.dtype.kind == "b" or str(present.dtype) == "boolean":
        return ", ".join(f"{value} ({count})" for value, count in Counter(map(str, present)).most_common())
    if kind == "number" and present.dtype.kind in "iuf":
        unit = f" {column.reading.unit}" if column.reading.unit else ""
        return f"{present.min():.6g} to {present.max():.6g}{unit}"
    if kind == "date" and present.dtype.kind == "M":
        return f"{present.min():%Y-%m-%d} to {present.max():%Y-%m-%d}"
    most = Counter(str(value) for value in present).most_common(3)
    return ", ".join(f"{text[:20]} ({count})" for text, count in most) + (", ..." if present.nunique() > 3 else "")

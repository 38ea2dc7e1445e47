"""A column as it was read from a file, and how it was read."""

from dataclasses import asdict, dataclass, field
from typing import Any

from mercer.tables.readers import NULL_STRINGS

# Texts that stand for a missing value in any column, and those that do so only among numbers and dates: "-" can be a
# category.
MISSING = NULL_STRINGS | {"n.a.", "N.A.", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "(null)"}
MISSING_AMONG_NUMBERS = frozenset(["-", "--", "---", ".", "..", "*", "–", "—", "na", "Na", "missing", "Missing", "x"])
# Plurals of the kinds of columns that do not just add an s.
SEVERAL = {"category": "categories", "constant": "constant", "missing": "missing"}
# A column of strings with fewer different values than this holds categories.
FEW_VALUES = 40


def in_words(kind: str, count: int) -> str:
    """Return the word for a number of columns of a kind, such as "numbers" or "category"."""
    return kind if count == 1 else SEVERAL.get(kind, f"{kind}s")


@dataclass(frozen=True)
class ColumnReading:
    """How a column is read. A model keeps these plain values, so that new rows are read as those of the fit.

    Attributes
    ----------
    kind : {"number", "date", "category", "text", "missing"}
    formats : list of str
        The formats of dates that are written as text.
    unit : str
        The unit that was removed from numbers.
    decimal : {".", ","}
        The decimal mark of numbers.
    """

    kind: str
    formats: list[str] = field(default_factory=list)
    unit: str = ""
    decimal: str = "."

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Column:
    """A column as it was read.

    Attributes
    ----------
    name : str
    values : Series
        Numbers, dates, booleans or strings. Values that are missing or could not be read are missing.
    reading : ColumnReading
    reason : str
        Why the column has its kind.
    n_missing : int
        Number of values that are missing in the file.
    n_unreadable : int
        Number of values that are in the file but could not be read as the kind.
    examples : list of (int, str)
        The first of these, each with its row, counted from 1.
    notes : list of str
        What the user should know: what was guessed, and what was left out.
    """

    name: str
    values: Any
    reading: ColumnReading
    reason: str
    n_missing: int
    n_unreadable: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

"""A column as it was read from a file, and how it was read."""

from dataclasses import asdict, dataclass, field
from typing import Any

from mercer.tables.readers import NULL_STRINGS

# Signs of a missing value in any column, and those that are such only among numbers and dates: "-" may be an answer.
MISSING = NULL_STRINGS | {"n.a.", "N.A.", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "(null)"}
MISSING_AMONG_NUMBERS = frozenset(["-", "--", "---", ".", "..", "*", "–", "—", "na", "Na", "missing", "Missing", "x"])
# The word for several columns of a kind, where it is not the kind with an s.
SEVERAL = {"category": "categories", "constant": "constant", "missing": "missing"}
# Strings of fewer different values are categories.
FEW_VALUES = 40


def in_words(kind: str, count: int) -> str:
    """Return the word for so many columns of a kind, such as "numbers" or "category"."""
    return kind if count == 1 else SEVERAL.get(kind, f"{kind}s")


@dataclass(frozen=True)
class ColumnReading:
    """How a column is read: plain values, which a model keeps, so that new rows are read as those of the fit.

    Attributes
    ----------
    kind : {"number", "date", "category", "text", "missing"}
    formats : list of str
        Of dates in texts.
    unit : str
        What was taken off numbers.
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
        Numbers, dates, booleans or strings; what is missing or could not be read is missing.
    reading : ColumnReading
    reason : str
        Why it is of its kind.
    n_missing : int
        Values that are missing in the file.
    n_unreadable : int
        Values that are there and could not be read as the kind.
    examples : list of (int, str)
        The first of these, with their rows, counted from 1.
    notes : list of str
        What a reader of the file may have to know: guesses, and what was left out.
    """

    name: str
    values: Any
    reading: ColumnReading
    reason: str
    n_missing: int
    n_unreadable: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

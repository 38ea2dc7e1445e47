"""The different texts of one column, so that each has to be read only once."""

from typing import Any

import numpy as np

from mercer.app.files.column import MISSING, MISSING_AMONG_NUMBERS
from mercer.tables.frames import optional

# A message quotes at most this many rows.
EXAMPLES = 3
PADDING = " \t\0\u00a0"


class Texts:
    """The different texts of a column, how often each occurs, and which stand for a missing value.

    Parameters
    ----------
    column : Series

    Attributes
    ----------
    codes : ndarray of int
        For each row the position of its text in `different`; -1 if it has none.
    different : list of str
    counts : ndarray of int
        How often each different text occurs.
    missing, weak : ndarray of bool
        Whether each different text stands for a missing value in any column, or only among numbers and dates.
    """

    def __init__(self, column: Any) -> None:
        pandas = optional("pandas", "reading tables", "files")
        if column.dtype.kind == "O" and str(column.dtype) != "object":
            stripped = column.str.strip(PADDING)  # one of pandas' types for texts
        else:
            stripped = column.map(lambda value: value.strip(PADDING) if isinstance(value, str) else None)
        codes, different = pandas.factorize(stripped)
        self.codes = np.asarray(codes)
        self.different: list[str] = np.asarray(different, dtype=object).tolist()
        self.counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.different))
        self.missing = np.array([text in MISSING for text in self.different], dtype=bool)
        self.weak = np.array([text in MISSING_AMONG_NUMBERS for text in self.different], dtype=bool)

    def present(self, *, weak: bool) -> np.ndarray:
        """Return the positions of the texts that are values; `weak` includes those that are missing among numbers."""
        return np.flatnonzero(~self.missing & (weak | ~self.weak))

    def spread(self, per_text: Any, fill: Any) -> np.ndarray:
        """Return for each row the value of its text, given one value for each different text; `fill` if it has none."""
        return np.where(self.codes >= 0, np.asarray(per_text)[self.codes] if len(self.different) else fill, fill)

    def rows_of(self, places: np.ndarray) -> list[tuple[int, str]]:
        """Return the first rows, counted from 1, that have one of the texts at some positions, each with its text."""
        rows = np.flatnonzero(np.isin(self.codes, places))[:EXAMPLES]
        return [(int(row) + 1, self.different[self.codes[row]]) for row in rows]

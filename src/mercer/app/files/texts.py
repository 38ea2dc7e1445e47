"""The texts of one column: each different one is looked at once."""

from typing import Any

import numpy as np

from mercer.app.files.column import MISSING, MISSING_AMONG_NUMBERS
from mercer.tables.frames import optional

# Rows of which a message says what they hold.
EXAMPLES = 3
PADDING = " \t\0\u00a0"


class Texts:
    """The different texts of a column, how often each comes, and which stand for nothing."""

    def __init__(self, column: Any) -> None:
        pandas = optional("pandas", "reading tables", "files")
        if column.dtype.kind == "O" and str(column.dtype) != "object":
            stripped = column.str.strip(PADDING)  # a type of texts, which pandas handles as a whole
        else:
            stripped = column.map(lambda value: value.strip(PADDING) if isinstance(value, str) else None)
        codes, different = pandas.factorize(stripped)
        self.codes = np.asarray(codes)
        self.different: list[str] = np.asarray(different, dtype=object).tolist()
        self.counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.different))
        self.missing = np.array([text in MISSING for text in self.different], dtype=bool)
        self.weak = np.array([text in MISSING_AMONG_NUMBERS for text in self.different], dtype=bool)

    def present(self, *, weak: bool) -> np.ndarray:
        """Return the places of the texts that are values; without the signs that stand for nothing among numbers."""
        return np.flatnonzero(~self.missing & (weak | ~self.weak))

    def spread(self, per_text: Any, fill: Any) -> np.ndarray:
        """Return for each row what its text has, `fill` where there is no text."""
        return np.where(self.codes >= 0, np.asarray(per_text)[self.codes] if len(self.different) else fill, fill)

    def rows_of(self, places: np.ndarray) -> list[tuple[int, str]]:
        """Return the first rows that have one of some texts, counted from 1, with it."""
        rows = np.flatnonzero(np.isin(self.codes, places))[:EXAMPLES]
        return [(int(row) + 1, self.different[self.codes[row]]) for row in rows]

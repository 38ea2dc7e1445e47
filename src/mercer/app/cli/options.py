"""Values of the options that several commands share, for the functions that read and write tables."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mercer.exceptions import invalid_parameter

if TYPE_CHECKING:
    from mercer.app.files.reading import ReadOptions

# The name of a column, which may contain commas, its kind, and for dates an optional format.
KIND = re.compile(r"(?P<name>.+?)=(?P<kind>number|category|text|date)(?P<form>:(?:%.|[^%,])+)?(?:,|$)", re.DOTALL)


class TableOptions(NamedTuple):
    """How tables are read and written.

    Attributes
    ----------
    max_mb : float or None
        MiB that a table may take.
    safe_csv : bool
        Whether texts that a spreadsheet would take for formulas get an apostrophe before them.
    kinds : tuple of str
        The kinds of columns, such as "zip=category,age=number".
    header : bool or None
        Whether the first row has the names. None finds it out.
    sheet, encoding, decimal : str or None
        See `ReadOptions`. None finds them out.
    """

    max_mb: float | None = None
    safe_csv: bool = False
    kinds: tuple[str, ...] = ()
    header: bool | None = None
    sheet: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def reading(self) -> "ReadOptions":
        """Return the options for reading, as `read_described` takes them."""
        from mercer.app.files.reading import ReadOptions

        kinds = kinds_in(self.kinds)
        return ReadOptions(kinds, self.header, self.sheet, self.encoding, self.decimal, self.max_mb)


PLAIN = TableOptions()


def kinds_in(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the kinds of columns from options such as "zip=category,age=number" or "day=date:%d/%m/%Y"."""
    kinds: dict[str, str] = {}
    for text in texts:
        place = 0
        while place < len(text):
            match = KIND.match(text, place)
            if match is None:
                raise invalid_parameter(
                    "kinds",
                    text,
                    "columns with their kinds, such as 'zip=category,age=number': number, category, text, date, or a "
                    "date with its format, 'day=date:%d/%m/%Y'",
                )
            kinds[match["name"].strip()] = match["kind"] + (match["form"] or "")
            place = match.end()
    return kinds


def named(data: list[Path]) -> str:
    """Return the names of files for messages."""
    return ", ".join("standard input" if str(path) == "-" else str(path) for path in data)


def for_programs(data: list[Path]) -> Path | list[Path]:
    """Return a single file by itself and several as a list, for JSON."""
    return data[0] if len(data) == 1 else data

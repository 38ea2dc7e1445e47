"""Find where a table begins: skip the lines of a title above it, and decide whether its first row has the names."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from mercer.app.files.column import MISSING, MISSING_AMONG_NUMBERS
from mercer.app.files.dates_in_text import find_formats
from mercer.app.files.numbers_in_text import read_numbers

# The most rows below the first one that are compared with it.
MOST_ROWS = 200
# The names that columns of a file without names get.
MADE_NAME = re.compile(r"column_\d+")


class Header(NamedTuple):
    """How many rows are above the table, whether the next row has the names of the columns, and why."""

    n_above: int
    has_names: bool
    reason: str


def find_header(rows: Sequence[Sequence[Any]], known: Sequence[str] = (), asked: bool | None = None) -> Header:
    """Find where the table begins and whether its first row has the names of the columns.

    Parameters
    ----------
    rows : sequence of rows
        The first rows of the file, all of one length. Cells are texts or values; empty ones are None or "".
    known : sequence of str
        Names that must be among the names of the columns, such as that of the target.
    asked : bool or None
        Whether there are names, if the user has said so.
    """
    n_above = _rows_above(rows)
    table = rows[n_above:]
    if asked is not None:
        return Header(n_above, asked, "asked for")
    if not table:
        return Header(n_above, True, "there are no other rows")
    first, below = [_text(cell) for cell in table[0]], table[1 : 1 + MOST_ROWS]
    if known and set(known) <= set(first):
        return Header(n_above, True, f"it has the name {known[0]!r}")
    if known and all(MADE_NAME.fullmatch(name) for name in known):
        return Header(n_above, False, f"{known[0]!r} is a name that is given to columns without names")
    if not below:
        return Header(n_above, True, "there are no other rows")
    return Header(n_above, *_judge(first, below))


def _judge(first: Sequence[str], below: Sequence[Sequence[Any]]) -> tuple[bool, str]:
    """Return whether the first row has names, and why: words above numbers are names, numbers above numbers are not."""
    columns = [[_text(row[i]) for row in below] for i in range(len(first))]
    columns = [[text for text in column if text not in MISSING] for column in columns]
    if _count_up([text for text in first if _sort_of(text) == "number"]):
        return True, "its numbers count up, as names do"
    sorts = [_sort_of_column(column) for column in columns]
    words: list[int] = []
    values: list[int] = []
    for i, (text, sort) in enumerate(zip(first, sorts, strict=True)):
        if sort is not None and text and text not in MISSING | MISSING_AMONG_NUMBERS:
            (values if _sort_of(text) == sort else words).append(i)
    if len(values) > len(words):
        return False, f"it has values such as {first[values[0]]!r}, like the rows below"
    if words:
        return True, f"it has {first[words[0]]!r} above a column of {sorts[words[0]]}s"
    again = [i for i, text in enumerate(first) if text and text in set(columns[i])]
    if again and 2 * len(again) >= sum(bool(text) for text in first):
        return False, f"its texts are repeated below, such as {first[again[0]]!r}"
    return True, "its texts are not repeated below"


def _rows_above(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many rows at the beginning are a title: they fill few cells, while the table has more columns."""
    filled = [sum(bool(_text(cell)) for cell in row) for row in rows]
    if not filled:
        return 0
    usual = Counter(filled).most_common(1)[0][0]
    for i, count in enumerate(filled):
        is_first_cell = bool(rows[i]) and bool(_text(rows[i][0]))
        if count == 0 or (count == 1 and (usual > 2 or (usual == 2 and is_first_cell and i + 2 < len(filled)))):
            continue
        if _text(rows[i][0]).startswith("#") and count < usual:
            continue
        return i
    return 0


def _count_up(texts: Sequence[str]) -> bool:
    """Return whether whole numbers count up by one from 0 or 1, or in equal steps from a year, as names may do."""
    if len(texts) < 2 or not all(text.isdigit() for text in texts):
        return False
    numbers = [int(text) for text in texts]
    steps = {b - a for a, b in pairwise(numbers)}
    is_year = 1800 <= numbers[0] <= 2200 and len(numbers) > 2
    return len(steps) == 1 and (steps == {1} if numbers[0] in (0, 1) else is_year and min(steps) > 0)


def _sort_of_column(column: Sequence[str]) -> str | None:
    """Return what more than half of the texts of a column are, as `_sort_of` names it; None for words."""
    sorts = Counter(_sort_of(text) for text in column)
    sort, count = sorts.most_common(1)[0] if sorts else (None, 0)
    return sort if sort is not None and 2 * count > len(column) else None


def _sort_of(text: str) -> str | None:
    """Return "number", "number with <unit>", "date", or None for a word."""
    for mark in ".,":
        numbers = read_numbers([text], mark)
        if numbers.readable[0]:
            return f"number with {numbers.units[0]!r}" if numbers.units[0] else "number"
    return "date" if find_formats([text]) else None


def _text(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell).strip()

"""Find out how a text is divided into rows and fields: the delimiter, the quotes, and the number of columns."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from mercer.app.files.numbers_in_text import is_plain_number, read_numbers

DELIMITERS = (",", ";", "\t", "|")
WHITESPACE = r"\s+"
# A file of one column has no delimiter, and commas in it do not separate fields. This character is in no text.
NOTHING = "\x1f"
NAMES = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
    WHITESPACE: "spaces",
    NOTHING: "one column",
}
# The most records that are used to find the dialect, and the most whose fields are examined.
MOST_RECORDS, MOST_CLEAN = 500, 100
# A quote after a backslash, in the middle of a field.
ESCAPED_QUOTE = re.compile(r'\\"(?!\s*(?:[,;\t|]|$))', re.MULTILINE)
# A field in single quotes.
SINGLE_QUOTED = re.compile(r"(?:^|[,;\t|])\s*'[^'\n]*'\s*(?=[,;\t|]|$)", re.MULTILINE)


class Dialect(NamedTuple):
    """How a text is divided into fields.

    Attributes
    ----------
    delimiter : str
        One character, or `WHITESPACE`.
    quote : str
    escape : str or None
        The character before a quote inside a quoted field; None if the quote is doubled instead.
    width : int
        The largest number of fields in the records that were examined.
    """

    delimiter: str
    quote: str = '"'
    escape: str | None = None
    width: int = 1


def find_dialect(text: str, usual: str | None, is_whole: bool = True) -> Dialect:
    """Return how a text is divided into fields.

    The delimiter is the one for which most records have the same number of fields, and these are clean. Of two that are
    equally good, the usual one is chosen.

    Parameters
    ----------
    text : str
        The beginning of a file.
    usual : str or None
        The delimiter that belongs to the ending of the name of the file.
    is_whole : bool, default=True
        Whether the text is the whole file. Otherwise its last record may be incomplete and does not count.
    """
    quote = "'" if '"' not in text and SINGLE_QUOTED.search(text) else '"'
    escape = "\\" if ESCAPED_QUOTE.search(text) else None
    best, most = None, (0.0, False, 0)
    for delimiter in DELIMITERS:
        found = Dialect(delimiter, quote, escape)
        records = records_of(text, found, is_whole)
        counts = [len(record) for record in records]
        usual_count, alike = Counter(counts).most_common(1)[0] if counts else (1, 0)
        is_of_names = bool(counts) and counts[0] == max(counts) > 1  # rows may be shorter than the names, not longer
        if usual_count < 2 and not is_of_names:  # a character that is only in some lines is part of the texts
            continue
        quality = round(alike / len(counts) * _share_of_clean(records), 2)
        if (quality, delimiter == usual, usual_count) > most:
            best, most = found._replace(width=max(counts)), (quality, delimiter == usual, usual_count)
    spaced = _by_spaces(text, is_whole) if best is None else None
    return best or spaced or Dialect(NOTHING, quote, escape)


def records_of(text: str, dialect: Dialect, is_whole: bool = True, most: int = MOST_RECORDS) -> list[list[str]]:
    """Return the first records of a text as lists of fields, without blank lines.

    Parameters
    ----------
    text : str
    dialect : Dialect
    is_whole : bool, default=True
        Whether the text is the whole file. Otherwise its last record may be incomplete and is left out.
    most : int, default=500
        The largest number of records.
    """
    if dialect.delimiter == WHITESPACE:
        lines = text.splitlines()
        return [line.split() for line in (lines if is_whole else lines[:-1])[:most] if line.strip()]
    records: list[list[str]] = []
    # Allow fields as long as the whole text: with the default limit of the csv module, a long text would be an error.
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    reader = csv.reader(
        StringIO(text, newline=""),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        doublequote=dialect.escape is None,
        skipinitialspace=dialect.delimiter != "\t",
    )
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            records.append(record)
        if len(records) > most:
            return records[:most]
    return records if is_whole or len(records) < 2 else records[:-1]


def _share_of_clean(records: Sequence[Sequence[str]]) -> float:
    """Return the share of clean fields: numbers, and texts that contain no other delimiter."""
    fields = [field for record in records[:MOST_CLEAN] for field in record]
    clean = sum(not any(mark in field for mark in DELIMITERS) or _is_number(field) for field in fields)
    return clean / max(1, len(fields))


def _is_number(field: str) -> bool:
    return any(read_numbers([field.strip()], mark).readable[0] for mark in ".,")


def _by_spaces(text: str, is_whole: bool) -> Dialect | None:
    """Return the dialect for columns separated by spaces, if all lines have as many and one holds only numbers."""
    records = records_of(text, Dialect(WHITESPACE), is_whole)
    widths = {len(record) for record in records}
    if len(widths) != 1 or widths == {1} or '"' in text:
        return None
    below: Sequence[list[str]] = records[1:] or records
    columns = zip(*below, strict=True)
    has_numbers = any(all(is_plain_number(field) for field in column) for column in columns)
    return Dialect(WHITESPACE, width=widths.pop()) if has_numbers else None

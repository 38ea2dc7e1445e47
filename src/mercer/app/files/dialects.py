"""How a text is cut into rows and fields: the delimiter, the quotes, and how wide the table is."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from mercer.app.files.numbers_in_text import is_plain_number, read_numbers

DELIMITERS = (",", ";", "\t", "|")
WHITESPACE = r"\s+"
# A file of one column has no delimiter, and commas in its texts separate nothing: this character is in no text.
NOTHING = "\x1f"
NAMES = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
    WHITESPACE: "spaces",
    NOTHING: "one column",
}
# Records that are looked at, and those whose fields are.
MOST_RECORDS, MOST_CLEAN = 500, 100
# A quote behind a backslash, in the middle of a field.
ESCAPED_QUOTE = re.compile(r'\\"(?!\s*(?:[,;\t|]|$))', re.MULTILINE)
# A field in single quotes that holds what would otherwise separate.
SINGLE_QUOTED = re.compile(r"(?:^|[,;\t|])\s*'[^'\n]*'\s*(?=[,;\t|]|$)", re.MULTILINE)


class Dialect(NamedTuple):
    """How a text is cut into fields.

    Attributes
    ----------
    delimiter : str
        One character, or `WHITESPACE`.
    quote : str
    escape : str or None
        What stands before a quote within quotes, if it is not another quote.
    width : int
        The most fields that a record has, of those that were looked at.
    """

    delimiter: str
    quote: str = '"'
    escape: str | None = None
    width: int = 1


def find_dialect(text: str, usual: str | None, is_whole: bool = True) -> Dialect:
    """Return how a text is cut into fields: with the delimiter that gives most records as many fields, and clean ones.

    Of two that serve alike, the usual one is taken.

    Parameters
    ----------
    text : str
        The beginning of a file.
    usual : str or None
        The delimiter that the ending of the file's name says.
    is_whole : bool, default=True
        Whether the text is all of the file; otherwise its last record may be cut and does not count.
    """
    quote = "'" if '"' not in text and SINGLE_QUOTED.search(text) else '"'
    escape = "\\" if ESCAPED_QUOTE.search(text) else None
    best, most = None, (0.0, False, 0)
    for delimiter in DELIMITERS:
        found = Dialect(delimiter, quote, escape)
        records = records_of(text, found, is_whole)
        counts = [len(record) for record in records]
        usual_count, alike = Counter(counts).most_common(1)[0] if counts else (1, 0)
        is_of_names = bool(counts) and counts[0] == max(counts) > 1  # rows may be short, not longer than the names
        if usual_count < 2 and not is_of_names:  # a delimiter in some lines alone is a sign within texts
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
        Whether the text is all of the file; otherwise its last record may be cut and is left out.
    most : int, default=500
        How many records there are at most.
    """
    if dialect.delimiter == WHITESPACE:
        lines = text.splitlines()
        return [line.split() for line in (lines if is_whole else lines[:-1])[:most] if line.strip()]
    records: list[list[str]] = []
    # A field may hold what would be a whole file: without the limit of the module one long text would be an error.
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
    """Return the share of fields that are not cut wrongly: numbers, and texts in which nothing else separates."""
    fields = [field for record in records[:MOST_CLEAN] for field in record]
    clean = sum(not any(mark in field for mark in DELIMITERS) or _is_number(field) for field in fields)
    return clean / max(1, len(fields))


def _is_number(field: str) -> bool:
    return any(read_numbers([field.strip()], mark).readable[0] for mark in ".,")


def _by_spaces(text: str, is_whole: bool) -> Dialect | None:
    """Return the dialect of columns set apart by spaces, if all lines have as many and some column has numbers."""
    records = records_of(text, Dialect(WHITESPACE), is_whole)
    widths = {len(record) for record in records}
    if len(widths) != 1 or widths == {1} or '"' in text:
        return None
    below: Sequence[list[str]] = records[1:] or records
    columns = zip(*below, strict=True)
    has_numbers = any(all(is_plain_number(field) for field in column) for column in columns)
    return Dialect(WHITESPACE, width=widths.pop()) if has_numbers else None

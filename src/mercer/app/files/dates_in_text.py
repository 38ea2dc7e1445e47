"""Read dates in the formats that people write: find the formats of the texts of a column, and parse them."""

import re
from functools import cache
from typing import Any

import numpy as np

from mercer.tables.frames import optional

DAYS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %Y",
    "%d %B %Y",
    "%d. %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
    "%a, %d %b %Y",
    "%Y-%b-%d",
)
TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    " %I:%M %p",
    " %I:%M:%S %p",
    " %I:%M%p",
    "T%H:%M",
    "T%H:%M:%S",
    "T%H:%M:%S.%f",
    ", %H:%M",
)
ZONES = ("", "%z", " %z")
# A month without a day is read as its first day.
MONTHS = ("%Y-%m", "%b %Y", "%B %Y", "%m/%Y", "%b-%y", "%b-%Y")
COMPACT = "%Y%m%d"
# A column may mix at most this many formats.
MOST_FORMATS = 3
# Formats whose texts can also be read with day and month swapped.
SWAPPED = {
    "%m/%d/": "%d/%m/",
    "%d/%m/": "%m/%d/",
    "%d-%m-%Y": "%m-%d-%Y",
    "%m-%d-%Y": "%d-%m-%Y",
}
SHAPES = {
    "%Y": r"\d{4}",
    "%y": r"\d{2}",
    "%m": r"\d{1,2}",
    "%d": r"\d{1,2}",
    "%b": r"[^\W\d_]{3,4}",
    "%B": r"[^\W\d_]{3,9}",
    "%a": r"[^\W\d_]{3}",
    "%H": r"\d{1,2}",
    "%I": r"\d{1,2}",
    "%M": r"\d{1,2}",
    "%S": r"\d{1,2}",
    "%f": r"\d{1,9}",
    "%p": r"[AaPp][Mm]",
    "%z": r"(?:Z|[+-]\d\d:?\d\d)",
}
LOOKS_LIKE_A_DATE = re.compile(r"(?=.*\d).*(?:\d[-/.:]\d|[A-Za-z]{3}|\d\.? [A-Za-z]).*", re.DOTALL)
YEARS = (1800, 2200)


def find_formats(texts: list[str]) -> list[str]:
    """Return the formats in which texts are dates, the most frequent one first; an empty list if they are no dates.

    Of two formats that read equally many texts, the one that comes first in `DAYS` is chosen.

    Parameters
    ----------
    texts : list of str
        Different texts, without spaces around them.
    """
    rest = list(texts)
    formats: list[str] = []
    while rest and len(formats) < MOST_FORMATS:
        best, most = None, 0
        for form in _candidates(rest):
            count = int(readable(rest, form).sum())
            if count > most:
                best, most = form, count
        if best is None or most < max(1, 0.02 * len(texts)):
            break
        formats.append(best)
        rest = [text for text, is_read in zip(rest, readable(rest, best), strict=True) if not is_read]
    return formats


def swapped(form: str) -> str | None:
    """Return a format with day and month swapped, or None if it is not used with the other order."""
    return next((form.replace(part, other) for part, other in SWAPPED.items() if part in form), None)


def readable(texts: list[str], form: str) -> np.ndarray:
    """Return for each text whether it is a date in a format."""
    return read_dates(texts, [form]).notna().to_numpy()


def read_dates(texts: list[Any], formats: list[str]) -> Any:
    """Return texts as a Series of dates. Each is read in the first format that fits, and is missing if none does.

    Dates with an offset from UTC are converted to UTC.

    Parameters
    ----------
    texts : list of str or None
    formats : list of str
    """
    pandas = optional("pandas", "reading dates", "files")
    zoned = any("%z" in form for form in formats)
    column = pandas.Series(texts, dtype=object)
    first, *others = formats or ["ISO8601"]
    dates = pandas.to_datetime(column, format=first, errors="coerce", utc=zoned)
    for form in others:
        dates = dates.fillna(pandas.to_datetime(column, format=form, errors="coerce", utc=zoned))
    wrong = (dates.dt.year < YEARS[0]) | (dates.dt.year > YEARS[1])
    return dates.mask(wrong).astype("datetime64[us, UTC]" if zoned else "datetime64[us]")


def are_compact(texts: list[str]) -> bool:
    """Return whether texts are all dates of eight digits, such as 20240131. Fewer than five may be so by chance."""
    if len(texts) < 5 or not all(len(text) == 8 and text.isdigit() and "1900" <= text[:4] <= "2100" for text in texts):
        return False
    return bool(readable(texts, COMPACT).all())


def _candidates(texts: list[str]) -> list[str]:
    """Return the formats whose shape fits at least one of a few of the texts, in the order of the lists above."""
    step = max(1, len(texts) // 5)
    some = [text for text in texts[::step][:6] if LOOKS_LIKE_A_DATE.fullmatch(text)]
    if not some:
        return []
    zoned = any(re.search(r"(?:Z|[+-]\d\d:?\d\d)$", text) for text in some)
    timed = any(":" in text for text in some)
    days = [*DAYS, *MONTHS]
    times = TIMES if timed else ("",)
    zones = ZONES if zoned else ("",)
    formats = [day + time + (zone if time else "") for day in days for time in times for zone in zones]
    return [form for form in dict.fromkeys(formats) if any(_shape(form).fullmatch(text) for text in some)]


@cache
def _shape(form: str) -> re.Pattern[str]:
    """Return a pattern for the texts of a format. It rules out most formats faster than parsing would."""
    parts = re.split(r"(%.)", form)
    return re.compile("".join(SHAPES[part] if part in SHAPES else re.escape(part) for part in parts))

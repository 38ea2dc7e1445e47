"""Readers that turn the values of one column into numbers: for numbers, dates and categories; `text` has one more.

A reader is made from a column in the fit and holds plain values only, so that it can be saved without pickle. `read`
returns raw numbers of shape (n, k) and says which values could not be read. A row whose value is missing is NaN
throughout. Each row is read by itself, so that the result does not depend on other rows or on the process.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mercer.checks import refuse_too_large
from mercer.tables.frames import optional

# Strings that mean "missing" to skrub and pandas. Upper and lower case differ: Nat may be a name.
NULL_STRINGS = frozenset(
    ["", "?", "...", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NaT"]
)
NULL_STRINGS |= {"null", "NULL", "none", "None", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND"}


class Reading(NamedTuple):
    """Raw numbers of shape (n, k), NaN where the value is missing, and the rows whose value could not be read."""

    raw: np.ndarray
    unreadable: np.ndarray


# ---- raw values -----------------------------------------------------------------------------------------------


def is_null_string(value: Any) -> bool:
    """Whether a value is a string that stands for a missing one."""
    return isinstance(value, str) and value.strip() in NULL_STRINGS


def without_padding(value: Any) -> Any:
    """Return a string without trailing NUL characters, which would turn a number into text."""
    return value.rstrip("\0") if isinstance(value, str) and value.endswith("\0") else value


def without_null_strings(column: Any) -> Any:
    """Return a column of objects in which every missing value is None, also if it was written as a string."""
    # Back to dtype object: if all values are dates, map makes a column of dates.
    values = column.astype(object).map(without_padding).astype(object)
    missing = column.isna().to_numpy(dtype=bool)
    missing = missing | np.fromiter(map(is_null_string, values), dtype=bool, count=len(values))
    values = values.copy()
    values[missing] = None
    return values


def as_text(value: Any) -> str:
    """Return a value as text; 3.0 becomes "3", because one missing value turns integers into floats."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_texts(column: Any) -> np.ndarray:
    """Return the text of each value, None where it is missing."""
    values = without_null_strings(column)
    return np.array([None if missing else as_text(v) for v, missing in zip(values, values.isna(), strict=True)], object)


def levels_of(texts: np.ndarray) -> tuple[list[str], bool]:
    """Return the distinct texts in order, and whether some are missing."""
    seen = {text for text in texts if text is not None}
    return sorted(seen), any(text is None for text in texts)


def level_codes(texts: np.ndarray, levels: list[str], missing: bool) -> np.ndarray:
    """Return the code of each text's level, -1 if it is none; with `missing`, missing values are the last level."""
    place: dict[str | None, int] = {level: i for i, level in enumerate(levels)}
    if missing:
        place[None] = len(place)
    return np.array([place.get(text, -1) for text in texts], dtype=int)


def infinity_in(name: str) -> ValueError:
    """Return the error for a column with infinite numbers."""
    return ValueError(f"column {name!r} of X contains infinity: numbers must be finite, or missing.")


# ---- the readers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of any dtype, also in strings; booleans are 0 and 1, and durations are in seconds."""

    kind: ClassVar[str] = "number"
    scaling: ClassVar[str] = "each"

    def read(self, column: Any) -> Reading:
        """Return the numbers, of shape (n, 1)."""
        if isinstance(column, np.ndarray):
            numbers = column.astype(np.float64)
            return Reading(numbers[:, None], np.zeros(len(numbers), dtype=bool))
        kind = column.dtype.kind
        if kind in "biuf":
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            unreadable = np.zeros(len(numbers), dtype=bool)
        elif kind == "m":
            numbers = column.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan)
            unreadable = np.zeros(len(numbers), dtype=bool)
        else:  # as objects, so that dates are not numbers: pandas would turn a column of dates into nanoseconds
            values = without_null_strings(column)
            converted = optional("pandas", "a table").to_numeric(values, errors="coerce")
            if converted.dtype.kind == "c":
                raise ValueError(f"Complex data not supported: column {column.name!r} of X has complex numbers.")
            numbers = converted.to_numpy(dtype=np.float64, na_value=np.nan)
            unreadable = np.isnan(numbers) & values.notna().to_numpy(dtype=bool)
        if np.isinf(numbers).any():
            raise infinity_in(column.name)
        refuse_too_large(numbers[:, None], "X", [column.name])
        return Reading(numbers[:, None], unreadable)

    def names(self, column: str) -> list[str]:
        """Return the names of what `read` gives."""
        return [column]


PARTS = (
    "total seconds",
    "year",
    "month (sin)",
    "month (cos)",
    "day",
    "weekday (sin)",
    "weekday (cos)",
    "time of day (sin)",
    "time of day (cos)",
)


def date_parts(times: np.ndarray) -> np.ndarray:
    """Return the PARTS of datetime64[us] values, of shape (n, 9); periodic parts as a point on a circle.

    The year, the day of the month and the time since 1970 stay numbers. On the circles, December is next to January,
    Sunday to Monday and 23:59 to 0:00.
    """
    days, months, years = (times.astype(f"datetime64[{unit}]") for unit in "DMY")
    second = (times - days) / np.timedelta64(1, "s")
    weekday = (days - np.datetime64("1970-01-05")) / np.timedelta64(1, "D") % 7  # from Monday
    month = (months - years.astype(months.dtype)) / np.timedelta64(1, "M")
    turns = [2 * np.pi * part for part in (month / 12, weekday / 7, second / 86400)]
    # Rounded: the sine of July is 1e-16 and that of January 0, and this difference would become a column.
    (month_sin, weekday_sin, time_sin), (month_cos, weekday_cos, time_cos) = (
        [np.round(function(turn), 12) for turn in turns] for function in (np.sin, np.cos)
    )
    total = (times - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    year = 1970 + (years - np.datetime64(0, "Y")) / np.timedelta64(1, "Y")
    day = 1 + (days - months.astype(days.dtype)) / np.timedelta64(1, "D")
    columns = [total, year, month_sin, month_cos, day, weekday_sin, weekday_cos, time_sin, time_cos]
    return np.stack(columns, axis=1)


def parse_dates(column: Any, form: str | None) -> Any:
    """Return a column as pandas dates, with strings in the format `form` or ISO 8601; unreadable values are missing.

    Numbers are read as text, such as 20240131; pandas would take them for nanoseconds since 1970.
    """
    if str(column.dtype).startswith("period"):
        return column.dt.to_timestamp()
    if column.dtype.kind == "M":
        return column
    values = without_null_strings(column).map(lambda v: as_text(v) if isinstance(v, (int, float, np.number)) else v)
    # Dates with different offsets from UTC fit into one column only after conversion to UTC.
    utc = form is None or "%z" in form
    return optional("pandas", "a table").to_datetime(values, format=form or "ISO8601", errors="coerce", utc=utc)


@dataclass(frozen=True, eq=False)
class Dates:
    """Dates and times, also in strings of one format, in the time zone of the fit.

    Attributes
    ----------
    form : str or None
        The format of strings; None if the column held dates.
    zone : str or None
        The time zone; None and dates without one are taken as UTC.
    """

    form: str | None
    zone: str | None

    kind: ClassVar[str] = "date"
    scaling: ClassVar[str] = "share"

    @classmethod
    def fit(cls, column: Any, form: str | None) -> "Dates":
        """Find the time zone of the dates."""
        dates = parse_dates(column, form).iloc[:0]
        zone = None if dates.dt.tz is None else str(dates.dt.tz)
        try:
            dates.dt.tz_localize(None).dt.tz_localize(zone)
        except Exception:  # a user-defined zone, which cannot be restored from its name
            zone = "UTC"
        return cls(form, zone)

    def read(self, column: Any) -> Reading:
        """Return the PARTS of each date, of shape (n, 9)."""
        dates = parse_dates(column, self.form)
        dates = dates.dt.tz_localize("UTC") if dates.dt.tz is None else dates
        times = dates.dt.tz_convert(self.zone or "UTC").dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        missing = np.isnat(times)
        raw = np.full((len(times), len(PARTS)), np.nan)
        raw[~missing] = date_parts(times[~missing])
        return Reading(raw, missing & without_null_strings(column).notna().to_numpy(dtype=bool))

    def names(self, column: str) -> list[str]:
        """Return the names of what `read` gives."""
        return [f"{column}: {part}" for part in PARTS]


@dataclass(frozen=True, eq=False)
class Categories:
    """A category with few levels: one column for each level, which is 1 for the rows that have it.

    Attributes
    ----------
    levels : list of str
    missing : bool
        Whether a missing value is a level too, the last one, because there were some in the fit.
    """

    levels: list[str]
    missing: bool

    kind: ClassVar[str] = "category"
    scaling: ClassVar[str] = "none"

    @classmethod
    def fit(cls, column: Any) -> "Categories":
        """Find the levels."""
        return cls(*levels_of(as_texts(column)))

    def read(self, column: Any) -> Reading:
        """Return which level each value is, of shape (n, number of levels)."""
        codes = level_codes(as_texts(column), self.levels, self.missing)
        raw = (codes[:, None] == np.arange(len(self.levels) + self.missing)).astype(np.float64)
        return Reading(raw, np.zeros(len(raw), dtype=bool))

    def names(self, column: str) -> list[str]:
        """Return the names of what `read` gives."""
        return [f"{column}={level}" for level in self.levels] + [f"{column} is missing"] * self.missing

"""Find out what the texts of a column are: numbers, dates, booleans, codes, categories or text."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from mercer.app.files.column import FEW_VALUES, Column, ColumnReading
from mercer.app.files.dates_in_text import COMPACT, are_compact, find_formats, read_dates, swapped
from mercer.app.files.numbers_in_text import Numbers, is_code, plain_numbers, read_numbers, unit_of
from mercer.app.files.texts import EXAMPLES, Texts
from mercer.exceptions import shown
from mercer.tables.choice import comes_again
from mercer.tables.frames import optional

TRUTHS = {"true": True, "false": False}
# A column of numbers or dates may have some values that are neither: one if at least FEWEST_READ can be read, or the
# share MOST_STRAY if more than FEWEST_DISTINCT different texts can be read.
MOST_STRAY, FEWEST_READ, FEWEST_DISTINCT = 0.1, 4, 10
# If at least this share of values are numbers or dates, but the column is read as something else, a note says so.
WORTH_A_NOTE = 0.5
# The most rows, and different texts, of a column that are used to find the decimal mark.
MOST_ROWS_ASKED, MOST_ASKED = 10_000, 500


class Marks(NamedTuple):
    """The decimal mark of a file if it is known, and whether commas are decimal marks if nothing shows it."""

    decimal: str | None
    commas_are_decimal: bool


def decimal_evidence(columns: Iterable[Any]) -> str | None:
    """Return the decimal mark that columns of texts show: more numbers can be read only with it; None for a tie."""
    only = {".": 0, ",": 0}
    for column in columns:
        texts = Texts(column.head(MOST_ROWS_ASKED))
        some = [texts.different[i] for i in texts.present(weak=False)[:MOST_ASKED]]
        with_point, with_comma = (read_numbers(some, mark).readable for mark in ".,")
        if max(with_point.sum(), with_comma.sum()) >= WORTH_A_NOTE * len(some):
            only["."] += int((with_point & ~with_comma).sum())
            only[","] += int((with_comma & ~with_point).sum())
    return None if only["."] == only[","] else max(only, key=lambda mark: only[mark])


def with_decimal_points(column: Any) -> Any:
    """Return a column of texts with points in place of decimal commas, if enough of it can be read as numbers."""
    texts = Texts(column)
    numbers = read_numbers(texts.different, ",")
    present = texts.present(weak=False)
    if not _is_enough(texts, present[numbers.readable[present]], present[~numbers.readable[present]]):
        return column
    written = [
        f"{value!r} {unit}".strip() if is_number else text
        for text, value, unit, is_number in zip(
            texts.different, numbers.values.tolist(), numbers.units, numbers.readable, strict=True
        )
    ]
    series = optional("pandas", "a table").Series
    return series(texts.spread(np.array([*written, None], dtype=object)[:-1], None), index=column.index, dtype=object)


def read_texts(name: str, column: Any, asked: ColumnReading | None, marks: Marks) -> Column:
    """Return a column of texts with its kind.

    Parameters
    ----------
    name : str
    column : Series of str or None
    asked : ColumnReading or None
        How to read the column; None finds it out.
    marks : Marks
    """
    texts = Texts(column)
    index = column.index
    if not len(texts.present(weak=True)):
        empty = optional("pandas", "a table").Series(np.full(len(column), np.nan), index=index, name=name)
        return Column(name, empty, ColumnReading("missing"), "no values", len(column))
    if asked is not None and asked.kind != "missing":
        return _as_asked(name, texts, index, asked, marks)
    found = _truths(name, texts, index) or _codes(name, texts, index)
    if found is not None:
        return found
    notes: list[str] = []
    numbers = _numbers(name, texts, index, marks, None, notes)
    if numbers is not None:
        return numbers
    dates = _dates(name, texts, index, None, notes)
    return dates if dates is not None else _strings(name, texts, index, None, notes)


def _as_asked(name: str, texts: Texts, index: Any, asked: ColumnReading, marks: Marks) -> Column:
    if asked.kind == "number":
        column = _truths(name, texts, index) or _numbers(name, texts, index, marks, asked, [])
    elif asked.kind == "date":
        column = _dates(name, texts, index, asked, [])
    else:
        column = _strings(name, texts, index, asked, [])
    # With a kind that is asked for, no function returns None, however few of the values can be read.
    return cast("Column", column)


def _truths(name: str, texts: Texts, index: Any) -> Column | None:
    if any(texts.different[i].casefold() not in TRUTHS for i in texts.present(weak=True)):
        return None
    truth: list[Any] = [TRUTHS.get(text.casefold()) for text in texts.different]
    values = texts.spread(np.array([*truth, None], dtype=object)[:-1], None)
    missing = int(sum(value is None for value in values))
    series = optional("pandas", "a table").Series(values.astype(object), index=index, name=name)
    series = series.astype("boolean" if missing else bool)
    return Column(name, series, ColumnReading("number"), "true counts as 1, false as 0", missing)


def _codes(name: str, texts: Texts, index: Any) -> Column | None:
    """Return a column of digits that are codes, such as zip codes with leading zeros, as strings; else None."""
    present = [texts.different[i] for i in texts.present(weak=False)]
    if not all(text.isdigit() for text in present):
        return None
    code = next((text for text in present if is_code(text)), None)
    if code is None or are_compact(present):
        return None
    why = "leading zeros" if code.startswith("0") else "more digits than numbers keep"
    return _strings(name, texts, index, None, [], reason=f"codes, not amounts: {why}, such as {code!r}")


def _numbers(
    name: str, texts: Texts, index: Any, marks: Marks, asked: ColumnReading | None, notes: list[str]
) -> Column | None:
    """Return the column as numbers; None if too many texts are no numbers. A note is added if most of them are."""
    places = texts.present(weak=False)
    if not len(places):
        return None
    some = [texts.different[i] for i in places]
    # In a file with decimal commas, points may separate thousands.
    plain = None if marks.decimal == "," and any("." in text for text in some) else plain_numbers(some)
    if plain is not None:
        if asked is None and are_compact(some):
            return None
        numbers, mark, unit = Numbers(plain, [""] * len(some), np.zeros(len(some), bool)), ".", ""
        own: list[str] = []
    else:
        numbers, mark, own = _with_decimal(name, some, texts.counts[places], marks, asked)
        found = unit_of(numbers)
        unit = found or ""
        if found is None and asked is None:
            units = sorted({unit for unit in numbers.units if unit})
            if numbers.readable.mean() >= WORTH_A_NOTE:
                notes.append(f"column {name!r} has numbers with different units, {_few(units)}: it is read as text.")
            return None
    wrong = places[~numbers.readable]
    if asked is None and not _is_enough(texts, places[numbers.readable], wrong):
        _say_if_many(name, texts, places[numbers.readable], wrong, "number", notes)
        return None
    per_text = np.full(len(texts.different), np.nan)
    per_text[places] = numbers.values
    values = texts.spread(per_text, np.nan).astype(np.float64)
    reason = (
        "numbers"
        + (f", without their unit {unit!r}" if unit else "")
        + (", with decimal commas" if mark == "," else "")
    )
    return _column(
        name, _whole(values, some), index, ColumnReading("number", [], unit, mark), reason, texts, wrong, own
    )


def _with_decimal(
    name: str, some: list[str], counts: np.ndarray, marks: Marks, asked: ColumnReading | None
) -> tuple[Numbers, str, list[str]]:
    """Read numbers with the decimal mark that reads more texts, or in a tie with that of the file or of a fit."""
    both = {mark: read_numbers(some, mark) for mark in ".,"}
    read = {mark: int(counts[numbers.readable].sum()) for mark, numbers in both.items()}
    if read["."] != read[","]:
        mark = max(read, key=lambda mark: read[mark])
        return both[mark], mark, []
    if marks.decimal is not None:
        return both[marks.decimal], marks.decimal, []
    if asked is not None:
        return both[asked.decimal], asked.decimal, []
    doubtful = np.flatnonzero(both["."].grouped | both[","].grouped)
    has_comma = any("," in some[i] for i in doubtful)
    mark, other = (",", ".") if has_comma and marks.commas_are_decimal else (".", ",")
    notes = [
        f"column {name!r}: {some[i]!r} is read as {both[mark].values[i]:.15g}; --decimal '{other}' reads it as "
        f"{both[other].values[i]:.15g}."
        for i in doubtful[:1]
    ]
    return both[mark], mark, notes


def _dates(name: str, texts: Texts, index: Any, asked: ColumnReading | None, notes: list[str]) -> Column | None:
    """Return the column as dates; None if too many texts are no dates. A note is added if most of them are."""
    places = texts.present(weak=False)
    some = [texts.different[i] for i in places]
    formats = list(asked.formats) if asked is not None else []
    own: list[str] = []
    if not formats:
        formats = [COMPACT] if are_compact(some) else find_formats(some)
        if any(swapped(form) in formats for form in formats):
            notes.append(
                f"column {name!r} has dates with day and month in both orders, such as {_few(some)}: it is "
                "read as text."
            )
            formats = []
        else:
            formats, own = _in_order(name, texts, places, formats)
    elif asked is not None:
        # Dates in other formats than those of the fit are read, too, if day and month cannot be confused in them.
        is_read = read_dates([*some, None], formats)[:-1].notna()
        unread = [text for text, known in zip(some, is_read, strict=True) if not known]
        formats += [form for form in find_formats(unread) if swapped(form) is None]
    if not formats and asked is None:
        return None
    read = read_dates([*some, None], formats)[:-1] if formats or asked is None else read_dates([None] * len(some), [])
    known = read.notna().to_numpy()
    wrong = places[~known]
    if asked is None and not _is_enough(texts, places[known], wrong):
        _say_if_many(name, texts, places[known], wrong, "date", notes)
        return None
    pandas = optional("pandas", "a table")
    place = np.full(len(texts.different) + 1, -1)
    place[places] = np.arange(len(places))
    rows = place[texts.codes]
    values = (
        read.take(np.where(rows >= 0, rows, 0)).mask(rows < 0)
        if len(read)
        else pandas.Series([pandas.NaT] * len(index))
    )
    reason = f"dates as {' and '.join(formats)}" if formats else "dates"
    return _column(
        name,
        values.to_numpy() if values.dt.tz is None else values.array,
        index,
        ColumnReading("date", formats),
        reason,
        texts,
        wrong,
        own,
    )


def _in_order(name: str, texts: Texts, places: np.ndarray, formats: list[str]) -> tuple[list[str], list[str]]:
    """Return the formats with the right order of day and month, and a note if the order is a guess.

    If both orders can be read, the one in which the rows follow each other in time is chosen.
    """
    if len(formats) != 1 or (other := swapped(formats[0])) is None:
        return formats, []
    some = [texts.different[i] for i in places]
    dates = {form: read_dates(some, [form]) for form in (formats[0], other)}
    if not dates[other].notna().equals(dates[formats[0]].notna()) or dates[other].equals(dates[formats[0]]):
        return formats, []
    place = np.full(len(texts.different) + 1, -1)
    place[places] = np.arange(len(places))
    rows = place[texts.codes]
    rows = rows[rows >= 0]
    follow = {form: _follow(read.take(rows).dropna().to_numpy()) for form, read in dates.items()}
    chosen = other if follow[other] and not follow[formats[0]] else formats[0]
    if follow[formats[0]] != follow[other]:
        return [chosen], []
    # Both orders read the same texts. Where the dates are equal, day and month are the same number.
    differ = (dates[other] != dates[chosen]) & dates[chosen].notna()
    open_one = int(np.flatnonzero(differ.to_numpy())[0])
    return [chosen], [
        f"column {name!r}: {some[open_one]!r} is read as {dates[chosen].iloc[open_one]:%d %B %Y}; "
        f"--kinds '{name}=date:{other}' swaps day and month."
    ]


def _follow(dates: np.ndarray) -> bool:
    steps = np.diff(dates.astype("datetime64[us]").astype(np.int64))
    return len(steps) > 1 and bool((steps >= 0).all() or (steps <= 0).all())


def _strings(
    name: str, texts: Texts, index: Any, asked: ColumnReading | None, notes: list[str], reason: str | None = None
) -> Column:
    present = texts.present(weak=True)
    per_text = np.array([*texts.different, None], dtype=object)[:-1]
    per_text[texts.missing] = None
    values = texts.spread(per_text, None)
    distinct = len(present)
    if asked is not None:
        kind, why = asked.kind, "asked for"
    elif distinct < FEW_VALUES:
        kind, why = "category", f"{distinct} different {'text' if distinct == 1 else 'texts'}"
    elif comes_again(values):
        kind, why = "category", f"{distinct} different texts that are repeated"
    else:
        kind, why = "text", f"{distinct} different texts"
    series = optional("pandas", "a table").Series(values.tolist(), index=index, name=name)
    n_missing = int(sum(value is None for value in values))
    return Column(name, series, ColumnReading(kind), reason or why, n_missing, notes=notes)


# ---- shared by all kinds ----------------------------------------------------------------------------------------


def _is_enough(texts: Texts, good: np.ndarray, wrong: np.ndarray) -> bool:
    """Return whether enough texts are of a kind for the others to be errors, not values of another kind."""
    n_good, n_wrong = int(texts.counts[good].sum()), int(texts.counts[wrong].sum())
    if n_wrong == 0:
        return n_good > 0
    if n_wrong == 1:
        return n_good >= FEWEST_READ
    return n_wrong <= MOST_STRAY * (n_good + n_wrong) and len(good) > FEWEST_DISTINCT


def _say_if_many(name: str, texts: Texts, good: np.ndarray, wrong: np.ndarray, kind: str, notes: list[str]) -> None:
    n_good, n_wrong = int(texts.counts[good].sum()), int(texts.counts[wrong].sum())
    if n_good >= WORTH_A_NOTE * (n_good + n_wrong):
        row, text = texts.rows_of(wrong)[0]
        notes.append(
            f"column {name!r}: {n_good} of {n_good + n_wrong} values are {kind}s, but others are not, such as "
            f"{shown(text, 60)} in row {row}, so it is not read as {kind}s. --kinds '{name}={kind}' does so and "
            "counts the others as missing."
        )


def _column(
    name: str,
    values: Any,
    index: Any,
    reading: ColumnReading,
    reason: str,
    texts: Texts,
    wrong: np.ndarray,
    notes: list[str],
) -> Column:
    series = optional("pandas", "a table").Series(values, index=index, name=name)
    n_wrong = int(texts.counts[wrong].sum())
    examples = texts.rows_of(wrong)
    if n_wrong:
        rows = ", ".join(f"{shown(text, 60)} in row {row}" for row, text in examples)
        more = f" and {n_wrong - len(examples)} more" if n_wrong > len(examples) else ""
        count = "counts" if n_wrong == 1 else "count"
        notes = [*notes, f"column {name!r}: {rows}{more} cannot be read as a {reading.kind} and {count} as missing."]
    return Column(name, series, reading, reason, int(series.isna().sum()) - n_wrong, n_wrong, examples, notes)


def _whole(values: np.ndarray, texts: list[str]) -> np.ndarray:
    """Return numbers as integers if all are written as whole numbers and none is missing."""
    if np.isnan(values).any() or not all(text.lstrip("+-").isdigit() for text in texts):
        return values
    return values.astype(np.int64)


def _few(texts: list[str]) -> str:
    return ", ".join(shown(text, 40) for text in texts[:EXAMPLES]) + (", ..." if len(texts) > EXAMPLES else "")

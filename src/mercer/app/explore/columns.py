"""Columns as the page shows them: points can be colored by numbers, dates and categories; texts can be searched."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.app.report.words import text_of

# A column with more different values than this is text, by which points cannot be colored.
MOST_LEVELS = 60
EPOCH, DAY = np.datetime64(0, "ns"), np.timedelta64(1, "D")


class Shown(NamedTuple):
    """A column of the data or of a model's answers, as the page draws it.

    Attributes
    ----------
    name : str
    kind : str
        "number", "date", "category" or "text".
    values : float32 ndarray of shape (n,)
        Numbers, days since 1970, or positions in `levels`. NaN if a value is missing; empty for texts.
    levels : list of str
        The levels of a category: numbers in ascending order, words with the most frequent first.
    of : str
        "data", or the name of the model.
    """

    name: str
    kind: str
    values: np.ndarray
    levels: list[str]
    of: str

    def about(self) -> dict[str, Any]:
        """Return what the page is told about a column before it asks for the values."""
        return {"name": self.name, "kind": self.kind, "levels": self.levels, "of": self.of}


def shown_column(name: str, values: Any, of: str = "data") -> Shown:
    """Return a column as the page shows it.

    Parameters
    ----------
    name : str
    values : Series
    of : str, default="data"
        "data", or the name of the model that the column comes from.
    """
    if values.dtype.kind in "iuf":
        return Shown(name, "number", values.to_numpy(dtype=np.float32, na_value=np.nan), [], of)
    if values.dtype.kind == "M":
        return Shown(name, "date", days_of(values.to_numpy(dtype="datetime64[ns]")).astype(np.float32), [], of)
    return shown_texts(name, texts_in(values), of)


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN or NaT."""
    return value is None or value != value


def days_of(dates: Any) -> np.ndarray:
    """Return dates as days since 1970; missing ones are NaN."""
    dates = np.asarray(dates, dtype="datetime64[ns]")
    return np.where(np.isnat(dates), np.nan, (dates - EPOCH) / DAY)


def shown_texts(name: str, texts: Sequence[str | None], of: str, levels: Sequence[str] | None = None) -> Shown:
    """Return a column of texts, in which None is missing. It is a category if there are few different ones."""
    counts = Counter(text for text in texts if text is not None)
    found = _in_order(counts) if levels is None else list(levels)
    if len(found) > MOST_LEVELS:
        return Shown(name, "text", np.zeros(0, dtype=np.float32), [], of)
    place = {level: float(k) for k, level in enumerate(found)}
    codes = [np.nan if text is None else place[text] for text in texts]
    return Shown(name, "category", np.array(codes, dtype=np.float32), found, of)


def texts_in(values: Any) -> list[str | None]:
    """Return the values of a Series as texts; missing ones are None."""
    return [None if missing else text_of(value) for value, missing in zip(values, values.isna(), strict=True)]


def _in_order(counts: Counter[str]) -> list[str]:
    if all(text.removeprefix("-").isdecimal() for text in counts):
        return sorted(counts, key=int)
    return sorted(counts, key=lambda text: (-counts[text], text))

"""Columns that points are colored by and rows are told by: numbers, dates, categories; texts are for the search."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.app.report.words import text_of

# Values of a column past which it is text and colors nothing.
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
        Numbers; days since 1970; places in `levels`. NaN where a value is missing; empty for texts.
    levels : list of str
        Of a category: numbers in their order, words the most frequent first.
    of : str
        "data", or the name of the model.
    """

    name: str
    kind: str
    values: np.ndarray
    levels: list[str]
    of: str

    def about(self) -> dict[str, Any]:
        """Return what the page knows of a column before it asks for its values."""
        return {"name": self.name, "kind": self.kind, "levels": self.levels, "of": self.of}


def shown_column(name: str, values: Any, of: str = "data") -> Shown:
    """Return a column for the page.

    Parameters
    ----------
    name : str
    values : Series
    of : str, default="data"
    """
    if values.dtype.kind in "iuf":
        return Shown(name, "number", values.to_numpy(dtype=np.float32, na_value=np.nan), [], of)
    if values.dtype.kind == "M":
        return Shown(name, "date", days_of(values.to_numpy(dtype="datetime64[ns]")).astype(np.float32), [], of)
    return shown_texts(name, texts_in(values), of)


def is_missing(value: Any) -> bool:
    """Whether a value is none: None, NaN or a date that is no date."""
    return value is None or value != value


def days_of(dates: Any) -> np.ndarray:
    """Return dates as days since 1970, NaN where one is missing."""
    dates = np.asarray(dates, dtype="datetime64[ns]")
    return np.where(np.isnat(dates), np.nan, (dates - EPOCH) / DAY)


def shown_texts(name: str, texts: Sequence[str | None], of: str, levels: Sequence[str] | None = None) -> Shown:
    """Return a column of texts: a category if they are few, None where one is missing."""
    counts = Counter(text for text in texts if text is not None)
    found = _in_order(counts) if levels is None else list(levels)
    if len(found) > MOST_LEVELS:
        return Shown(name, "text", np.zeros(0, dtype=np.float32), [], of)
    place = {level: float(k) for k, level in enumerate(found)}
    codes = [np.nan if text is None else place[text] for text in texts]
    return Shown(name, "category", np.array(codes, dtype=np.float32), found, of)


def texts_in(values: Any) -> list[str | None]:
    """Return the values of a Series as texts, None where one is missing."""
    return [None if missing else text_of(value) for value, missing in zip(values, values.isna(), strict=True)]


def _in_order(counts: Counter[str]) -> list[str]:
    if all(text.removeprefix("-").isdecimal() for text in counts):
        return sorted(counts, key=int)
    return sorted(counts, key=lambda text: (-counts[text], text))

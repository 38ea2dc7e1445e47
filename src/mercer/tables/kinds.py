"""The kind of each column, from its dtype or as skrub finds it in the values: number, date, category or text."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.tables.frames import optional
from mercer.tables.readers import as_texts, without_null_strings

KINDS = ("number", "date", "category", "text")
# skrub's names -> ours
SKRUB_KINDS = {"numeric": "number", "datetime": "date", "low_cardinality": "category", "high_cardinality": "text"}


class Found(NamedTuple):
    """The kind of a column, and the format of its dates if they are strings."""

    kind: str
    form: str | None


def find_kinds(columns: Mapping[str, Any], given: Mapping[str, str], cardinality_threshold: int) -> dict[str, Found]:
    """Return the kind of each column that has values.

    Parameters
    ----------
    columns : dict of names and pandas Series or ndarray
    given : dict of names and kinds
        The kinds that the user has given for some columns.
    cardinality_threshold : int
        Strings with this many different values or more are text.
    """
    told = {name: kind_of_dtype(column, cardinality_threshold) for name, column in columns.items()}
    unknown = {}
    for name, column in columns.items():
        if given.get(name) == "date" != told[name]:  # read as text: the date 20240131 may be an integer
            unknown[name] = optional("pandas", "a table").Series(as_texts(column), index=column.index)
        elif name not in given and told[name] is None:
            unknown[name] = without_null_strings(column)
    found = look_at(unknown, cardinality_threshold)
    kinds: dict[str, Found] = {}
    for name in columns:
        seen = found.get(name, Found(told[name] or "text", None))
        kind = given.get(name, seen.kind)
        if kind == "date" != seen.kind:
            raise invalid_parameter(f"kinds[{name!r}]", kind, [k for k in KINDS if k != "date"], "It holds no dates.")
        kinds[name] = Found(kind, seen.form)
    return kinds


def kind_of_dtype(column: Any, cardinality_threshold: int) -> str | None:
    """Return the kind of a column if its dtype determines it, or None for objects and strings."""
    if isinstance(column, np.ndarray) or column.dtype.kind in "biufcm":
        return "number"
    if column.dtype.kind == "M" or str(column.dtype).startswith("period"):
        return "date"
    if str(column.dtype) == "category":
        return "category" if len(set(as_texts(column)) - {None}) < cardinality_threshold else "text"
    return None


def look_at(columns: Mapping[str, Any], cardinality_threshold: int) -> dict[str, Found]:
    """Return the kind that skrub finds for each column, and the format of dates in strings.

    Only the kinds are used, not skrub's fitted objects, which need pickle. The values are then read by our own readers,
    both in the fit and at prediction.
    """
    if not columns:
        return {}
    skrub = optional("skrub", "a table with columns of strings")
    vectorizer = skrub.TableVectorizer(
        cardinality_threshold=cardinality_threshold, **dict.fromkeys(SKRUB_KINDS, "passthrough")
    ).fit(optional("pandas", "a table").DataFrame(columns))
    formats = {
        name: next((step.format_ for step in steps if isinstance(step, skrub.ToDatetime)), None)
        for name, steps in vectorizer.all_processing_steps_.items()
    }
    return {name: Found(SKRUB_KINDS[kind], formats[name]) for name, kind in vectorizer.column_to_kind_.items()}

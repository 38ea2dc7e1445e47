"""The column to predict: whether it holds numbers or classes, from which columns it is predicted, and in which rows."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.app.files.tables import check_columns
from mercer.exceptions import DataFileError, DataWarning, invalid_parameter
from mercer.tables.frames import optional

TASKS = ("auto", "regression", "classification")
# Whole numbers are classes if they take at most this many values, and at most one value for this many rows.
MOST_WHOLE_CLASSES, ROWS_A_WHOLE_CLASS = 10, 10


def find_task(column: Any) -> str:
    """Return "regression" or "classification", decided by the values of the column to predict.

    Booleans, categories and strings are classes. So are whole numbers with at most 10 different values, and at most one
    value for 10 rows, such as grades, flags and digits. All other numbers are predicted as numbers.

    Parameters
    ----------
    column : Series without missing values
    """
    kind = _kind(column)
    if kind == "date":
        raise DataFileError(
            f"the target {column.name!r} holds dates, but only numbers and classes can be predicted: turn it into a "
            "number, such as days since some day, or choose the task classification."
        )
    if kind != "number":
        return "classification"
    values = as_numbers(column)
    distinct = len(np.unique(values))
    few = distinct <= MOST_WHOLE_CLASSES and distinct * ROWS_A_WHOLE_CLASS <= len(values)
    return "classification" if few and _are_whole(values) else "regression"


def as_numbers(column: Any) -> np.ndarray:
    """Return the values of a column as float64; raise if one is not a finite number."""
    if _kind(column) == "date":
        raise DataFileError(f"the target {column.name!r} holds dates, where a regression needs numbers.")
    values = optional("pandas", "a table").to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise DataFileError(
            f"the target {column.name!r} is not a finite number in {len(wrong)} of {len(values)} rows, "
            f"such as {column.iloc[int(wrong[0])]!r}: a regression needs numbers."
        )
    return values


def as_classes(column: Any) -> np.ndarray:
    """Return the values of a column as classes, as `class_values` does; raise if they cannot be classes.

    It is an error if there is one class only, or if there are more than half as many classes as rows: these are names
    or measurements.
    """
    classes = class_values(column)
    distinct = len(np.unique(classes))
    if distinct < 2:
        raise DataFileError(f"the target {column.name!r} has one value only, {classes[0]}: there is nothing to learn.")
    if 2 * distinct > len(classes):
        raise DataFileError(
            f"the target {column.name!r} has {distinct} different values in {len(classes)} rows, such as {classes[0]}: "
            "which are too many for classes. Is it an identifier, a text, or a number written with a unit?"
        )
    return classes


def class_values(column: Any) -> np.ndarray:
    """Return the values of a column as booleans, whole numbers, or otherwise strings.

    Missing values change the type of a column of booleans or whole numbers in pandas, but not the type of its classes.

    Parameters
    ----------
    column : Series without missing values
    """
    kind = _kind(column)
    if kind == "boolean":
        return column.to_numpy(dtype=bool)
    if kind == "number" and _are_whole(values := as_numbers(column)):
        return values.astype(np.int64)
    return np.array([str(value) for value in column], dtype=object)


def input_names(names: Sequence[str], target_name: str, ignore: Sequence[str]) -> list[str]:
    """Return the columns to predict from: all but the target and the ignored ones."""
    check_columns(names, [target_name], "target column")
    check_columns(names, list(ignore), "column to ignore")
    if target_name in ignore:
        raise invalid_parameter("ignore", ignore, f"without the target {target_name!r}")
    inputs = [name for name in names if name != target_name and name not in ignore]
    if not inputs:
        raise DataFileError(
            f"no column is left to learn from beside the target {target_name!r}"
            + (f": ignore={ignore!r} takes out all others." if ignore else ": the table has no other.")
        )
    return inputs


def rows_with_target(target: Any, max_rows: int | None, random: np.random.RandomState) -> np.ndarray:
    """Return the positions of the rows with a target; if there are more than `max_rows`, that many drawn at random."""
    rows = np.flatnonzero(target.notna().to_numpy())
    dropped = len(target) - len(rows)
    if len(rows) < 2:
        raise ValueError(f"the target {target.name!r} has {len(rows)} values in {len(target)} rows: too few.")
    if dropped:
        warnings.warn(
            f"{dropped} of {len(target)} rows have no value in {target.name!r}: they are left out.",
            DataWarning,
            stacklevel=3,
        )
    if max_rows is not None and len(rows) > max_rows:
        warnings.warn(f"{max_rows} of {len(rows)} rows are used, drawn at random.", DataWarning, stacklevel=3)
        rows = np.sort(random.choice(rows, max_rows, replace=False))
    return rows


def _kind(column: Any) -> str:
    """Return "boolean", "number", "date" or "other"."""
    letter = column.dtype.kind
    if letter == "b" or (letter == "O" and all(isinstance(value, (bool, np.bool_)) for value in column)):
        return "boolean"
    if letter in "mM":
        return "date"
    # Categorical columns have the kind O, whatever their values are.
    return "number" if letter in "iuf" else "other"


def _are_whole(values: np.ndarray) -> bool:
    return bool(np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53))

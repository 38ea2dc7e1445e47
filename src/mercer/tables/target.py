"""What is to be predicted, as it comes: a Series of strings, of categories, of numbers that may be missing."""

from typing import Any

import numpy as np


def check_target(y: Any) -> Any:
    """Return y as an array, or None; a row without a target teaches nothing, so that a missing value is an error.

    scikit-learn's estimators do not know pandas' nullable and categorical types, nor all its signs for missing values.
    """
    if y is None:
        return None
    y = y.to_pandas() if hasattr(y, "to_pandas") else y
    missing = _missing(y)
    rows = np.flatnonzero(np.atleast_1d(missing.any(axis=tuple(range(1, missing.ndim)))))
    if len(rows):
        shown = ", ".join(str(row) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")
        raise ValueError(
            f"y contains NaN or missing values in {len(rows)} of {len(y)} rows (counted from 0: {shown}): "
            "leave these rows out of X and y."
        )
    dtype = getattr(y, "dtype", None)
    if hasattr(y, "to_numpy") and not isinstance(dtype, np.dtype):
        # A nullable or categorical type: without missing values it has a plain one.
        return np.asarray(y.tolist()) if dtype is not None and dtype.kind in "biuf" else y.to_numpy()
    return np.asarray(y)


def _missing(y: Any) -> np.ndarray:
    if hasattr(y, "isna"):
        return np.asarray(y.isna(), dtype=bool)
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"y must have one target, or as many, for each row: {error}") from error
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    # NaN and NaT are the values that are not equal to themselves; pandas' NA answers neither yes nor no.
    flat = [value is None or type(value).__name__ == "NAType" or value != value for value in values.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(values.shape)

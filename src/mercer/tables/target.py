"""Targets of any type: a Series of strings, categories or nullable numbers becomes an array."""

from typing import Any

import numpy as np


def check_target(y: Any) -> Any:
    """Return y as an array, or None if there is no target; missing values are an error.

    scikit-learn's estimators do not support pandas' nullable and categorical types, nor all its missing values.
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
        # A nullable or categorical dtype: without missing values, it can become a NumPy dtype.
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
    # NaN and NaT are not equal to themselves; comparing pandas' NA gives neither True nor False.
    flat = [value is None or type(value).__name__ == "NAType" or value != value for value in values.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(values.shape)

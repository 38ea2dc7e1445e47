"""What explanations are given: rows of a data frame or an array, with their columns, and the coverage of intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter
from mercer.tables.frames import as_frame, column_names, positions


def check_rows(model: Any, X: Any, feature_names: Sequence[str] | None) -> tuple[Any, list[str]]:
    """Return X as a data frame or an array, with the columns that the model was fitted on, and their names."""
    frame = as_frame(X)
    if frame is None:
        rows = np.asarray(X)
        if rows.ndim != 2 or not rows.shape[1]:
            raise invalid_parameter("X", rows.shape, "a data frame or an array of shape (n, d)")
        names = [f"x{k}" for k in range(rows.shape[1])]
    else:
        names = column_names(frame)
        # A model of a table ignores columns that it was not fitted on.
        wanted = [str(name) for name in getattr(model, "feature_names_in_", names)]
        rows, names = frame.iloc[:, positions(names, wanted)], wanted
    if feature_names is None:
        return rows, names
    if len(feature_names) != len(names):
        raise invalid_parameter("feature_names", feature_names, f"a sequence of {len(names)} names")
    return rows, [str(name) for name in feature_names]


def taken(X: Any, order: np.ndarray) -> Any:
    """Return the rows of a data frame or an array in the given order."""
    return X[order] if isinstance(X, np.ndarray) else X.iloc[order]


def check_coverage(coverage: Any) -> float:
    """Return the coverage of an interval after checking that it lies strictly between 0 and 1."""
    number = check_number("coverage", coverage, above=0.0)
    if number >= 1:
        raise invalid_parameter("coverage", coverage, "a finite number above 0 and below 1")
    return number

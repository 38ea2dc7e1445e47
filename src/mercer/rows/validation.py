"""Checks of the data that `fit` receives: arrays as in scikit-learn, rows that are elsewhere without reading them."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from mercer.blocks import Rows
from mercer.checks import PRECISIONS, validated
from mercer.exceptions import invalid_parameter
from mercer.rows.dask_collections import DaskRows, is_dask
from mercer.rows.pieces import NUMBERS


def is_elsewhere(X: Any) -> bool:
    """Whether these are rows that are not in this process's memory."""
    return isinstance(X, Rows) or is_dask(X)


def validated_rows(estimator: Any, X: Any, *, reset: bool = True, ensure_min_samples: int = 1) -> Any:
    """Return X as a checked array if it is in memory, else as `Rows`, whose blocks are checked when they are read.

    With `reset`, the estimator's `n_features_in_` and `feature_names_in_` are set; otherwise they are compared.
    """
    if not is_elsewhere(X):
        return validated(estimator, X, dtype=PRECISIONS, reset=reset, ensure_min_samples=ensure_min_samples)
    rows = X if isinstance(X, Rows) else DaskRows(X)
    if rows.ndim != 2:
        raise invalid_parameter("X", rows.shape, "of shape (rows, columns)")
    others = {name: kind for name, kind in getattr(rows, "kinds", {}).items() if kind not in NUMBERS}
    if others:
        names = ", ".join(map(repr, others))
        raise invalid_parameter("X", others, "columns of numbers", f"`rows.without({names})` leaves these out.")
    if rows.dtype not in PRECISIONS:
        raise invalid_parameter("X", rows.dtype, "of float32 or float64")
    if len(rows) < ensure_min_samples:
        raise ValueError(f"X has {len(rows)} rows, and {type(estimator).__name__} needs at least {ensure_min_samples}.")
    _check_columns(estimator, rows, reset)
    return rows


def rows_brought_here(estimator: Any, X: Any, most: int, random_state: Any) -> tuple[Any, np.ndarray | None]:
    """Return rows in memory, for fits that do not sum over rows: X itself, or at most `most` rows that are elsewhere.

    Parameters
    ----------
    estimator : estimator
    X : array-like, Rows, or a collection of Dask
    most : int
        If there are more rows elsewhere, so many are drawn at random.
    random_state : int, RandomState instance or None

    Returns
    -------
    rows : X itself, an array, or a frame where columns have names
    numbers : ndarray or None
        The sorted numbers of the rows that were drawn; None if these are all rows.
    """
    if not is_elsewhere(X):
        return X, None
    rows = validated_rows(estimator, X)
    numbers = None
    if len(rows) > most:
        numbers = np.sort(check_random_state(random_state).choice(len(rows), most, replace=False))
    here = rows[:] if numbers is None else rows[numbers]
    if rows.names is None:
        return here, numbers
    import pandas as pd

    return pd.DataFrame(here, columns=list(rows.names), copy=False), numbers


def validated_column(y: Any, n_rows: int) -> Any:
    """Return a target or weights, for rows that are elsewhere, as `Rows` or an array of shape (n_rows,)."""
    if is_dask(y):
        y = DaskRows(y, "y")
    if not isinstance(y, Rows):
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if y.ndim == 2 and y.shape[1] == 1:
        raise invalid_parameter("y", y.shape, "a single column, of shape (n,)")
    if y.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows and y has {y.shape[0]}: they must have as many.")
    return y


def _check_columns(estimator: Any, rows: Rows, reset: bool) -> None:
    """Set the estimator's number and names of columns, or raise if the rows have others."""
    d, names = rows.shape[1], rows.names
    if reset:
        estimator.n_features_in_ = d
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    name = type(estimator).__name__
    if d != estimator.n_features_in_:
        raise ValueError(f"X has {d} features, but {name} is expecting {estimator.n_features_in_} features as input.")
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(known) != list(names):
        raise ValueError(f"X has the columns {list(names)}, and {name} was fitted with {list(known)}, in that order.")

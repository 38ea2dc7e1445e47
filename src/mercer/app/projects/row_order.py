"""Find out whether the rows of a table are in the order of time. Later rows should then be predicted from earlier."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from mercer.app.projects.identifiers import is_time

# Rows are in the order of a column with at least this many different values, if this share of the steps from row to row
# goes in one direction.
FEWEST_TIMES, SHARE_FORWARD = 10, 0.99
# A target that goes in one direction in this share of the steps is sorted, at least within groups of rows.
SHARE_SORTED = 0.75
# Rows follow each other in time if the errors of neighboring rows have at least this correlation, which must also be at
# least this many standard errors; fewer rows are not tested.
LEAST_CORRELATION, LEAST_ERRORS, FEWEST_ROWS = 0.3, 5.0, 50
# The most levels of a category that are used as inputs, and the most classes for which trees are grown.
MOST_LEVELS, MOST_CLASSES = 10, 3
N_TREES = 50
# Only the first rows are compared with their neighbors.
MOST_ROWS = 10_000


class TimeOrder(NamedTuple):
    """An order of the rows in time.

    Attributes
    ----------
    column : str or None
        The column with the times; None for the order of the rows in the file.
    times : ndarray of shape (n,)
        A number for each row, larger for later rows.
    reason : str
    """

    column: str | None
    times: np.ndarray
    reason: str


def find_time_order(frame: Any, kinds: Mapping[str, str], y: np.ndarray, skip: set[str]) -> TimeOrder | None:
    """Return the order of the rows in time, if a column shows it or neighboring rows have correlated errors, or None.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    y : ndarray of shape (n,) or (n, n_classes)
        The target as numbers, or as one column of 0 and 1 for each class.
    skip : set of str
        Identifiers. They are not times, although the number of a row grows in any table.
    """
    ordered = [name for name in kinds if _goes_one_way(frame[name], kinds[name])]
    for name in ordered:
        if name not in skip and (kinds[name] == "date" or (kinds[name] == "number" and is_time(name))):
            return TimeOrder(name, times_of(frame[name]), f"rows are in the order of {name!r}")
    Y = y[:, None] if y.ndim == 1 else y
    if len(Y) < FEWEST_ROWS or set(ordered) - skip or _is_sorted(Y):
        return None  # the table is sorted by an input or by the target, not by time
    Y = Y[:MOST_ROWS]
    X = _as_numbers(frame.iloc[:MOST_ROWS], kinds, skip)
    # A linear model is fast. If its errors are correlated, trees test whether this is only due to its being linear.
    for model in (_linear, _trees):
        predicted = model(X, Y)
        correlation = _correlation_of_neighbors(Y[:, : predicted.shape[1]] - predicted)
        if correlation < max(LEAST_CORRELATION, LEAST_ERRORS / np.sqrt(len(Y))):
            return None
    reason = f"rows that follow each other are more alike than their inputs explain (correlation {correlation:.2f})"
    return TimeOrder(None, np.arange(len(Y), dtype=np.float64), reason)


def times_of(column: Any) -> np.ndarray:
    """Return numbers unchanged and dates as microseconds. A missing value gets that of the row before."""
    filled = column.ffill().bfill()
    if filled.dtype.kind in "iufb":
        return filled.to_numpy(dtype=np.float64)
    if filled.dtype.kind != "M":  # periods, such as months and quarters
        filled = filled.dt.to_timestamp()
    naive = filled if filled.dt.tz is None else filled.dt.tz_convert(None)
    return naive.to_numpy(dtype="datetime64[us]").astype(np.float64)


def _goes_one_way(column: Any, kind: str) -> bool:
    """Return whether a column increases, or decreases, from row to row."""
    if kind not in ("date", "number") or column.dtype.kind not in "iufM" or column.notna().mean() < SHARE_FORWARD:
        return False
    times = times_of(column)
    steps = np.diff(times)
    is_one_way = max(np.mean(steps >= 0), np.mean(steps <= 0)) >= SHARE_FORWARD
    return bool(is_one_way and len(np.unique(times)) >= FEWEST_TIMES)


def _is_sorted(Y: np.ndarray) -> bool:
    """Return whether rows are sorted by the target, at least in pieces, or the classes come one after the other."""
    if Y.shape[1] == 1:
        steps = np.diff(Y[:, 0])
        return bool(max(np.mean(steps >= 0), np.mean(steps <= 0)) >= SHARE_SORTED)
    changes = int((np.diff(Y.argmax(axis=1)) != 0).sum())
    return changes <= 2 * Y.shape[1]


def _as_numbers(frame: Any, kinds: Mapping[str, str], skip: set[str]) -> np.ndarray:
    """Return the inputs as standardized numbers without missing values, and indicators of frequent categories."""
    columns = [np.zeros(len(frame))]
    for name, kind in kinds.items():
        if name in skip:
            continue
        if kind == "number" and frame[name].dtype.kind in "iufb":
            values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
            values = np.where(np.isnan(values), np.nanmedian(values) if not np.isnan(values).all() else 0.0, values)
            columns.append((values - values.mean()) / (values.std() or 1.0))
        elif kind == "category":
            for level in frame[name].value_counts().index[:MOST_LEVELS]:
                columns.append((frame[name] == level).to_numpy(dtype=np.float64))
    return np.stack(columns, axis=1)


def _linear(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return Ridge(alpha=1.0).fit(X, Y).predict(X).reshape(Y.shape)


def _trees(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return cross-validated predictions of boosted trees."""
    trees, folds = (
        HistGradientBoostingRegressor(max_iter=N_TREES, random_state=0),
        KFold(5, shuffle=True, random_state=0),
    )
    return np.stack([cross_val_predict(trees, X, y, cv=folds) for y in Y.T[:MOST_CLASSES]], axis=1)


def _correlation_of_neighbors(residuals: np.ndarray) -> float:
    centered = residuals - residuals.mean(axis=0)
    total = (centered**2).sum()
    return float((centered[1:] * centered[:-1]).sum() / total) if total > 0 else 0.0

"""Whether the rows of a table follow each other in time: then the later ones are to be predicted from the earlier."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from mercer.app.projects.identifiers import is_time

# Different times, and the share of steps that go forward, from which on rows are in the order of a column.
FEWEST_TIMES, SHARE_FORWARD = 10, 0.99
# A target that goes one way in this share of the steps is sorted, within groups of rows at least.
SHARE_SORTED = 0.75
# What inputs leave unexplained is alike in rows that follow each other: correlation, and in standard errors.
LEAST_CORRELATION, LEAST_ERRORS, FEWEST_ROWS = 0.3, 5.0, 50
# Levels of a category that are looked at, and classes for which trees are grown.
MOST_LEVELS, MOST_CLASSES = 10, 3
N_TREES = 50
# Rows, the first ones, of which neighbors are compared.
MOST_ROWS = 10_000


class TimeOrder(NamedTuple):
    """The rows in the order of time.

    Attributes
    ----------
    column : str or None
        What says the time; None is the order of the rows in the file.
    times : ndarray of shape (n,)
        The larger the later.
    reason : str
    """

    column: str | None
    times: np.ndarray
    reason: str


def find_time_order(frame: Any, kinds: Mapping[str, str], y: np.ndarray, skip: set[str]) -> TimeOrder | None:
    """Return the order of rows in time, if a column shows it or rows that follow each other are alike.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    y : ndarray of shape (n,) or (n, n_classes)
        The target as numbers, or a column a class.
    skip : set of str
        Identifiers: the number of a row goes up in any table.
    """
    ordered = [name for name in kinds if _goes_one_way(frame[name], kinds[name])]
    for name in ordered:
        if name not in skip and (kinds[name] == "date" or (kinds[name] == "number" and is_time(name))):
            return TimeOrder(name, times_of(frame[name]), f"rows are in the order of {name!r}")
    Y = y[:, None] if y.ndim == 1 else y
    if len(Y) < FEWEST_ROWS or set(ordered) - skip or _is_sorted(Y):
        return None  # sorted by an input, or by the target: that is no time
    Y = Y[:MOST_ROWS]
    X = _as_numbers(frame.iloc[:MOST_ROWS], kinds, skip)
    # A linear model is quick; what it leaves may be due to its stiffness, and then trees explain it.
    for model in (_linear, _trees):
        predicted = model(X, Y)
        correlation = _correlation_of_neighbors(Y[:, : predicted.shape[1]] - predicted)
        if correlation < max(LEAST_CORRELATION, LEAST_ERRORS / np.sqrt(len(Y))):
            return None
    reason = f"rows that follow each other are alike beyond their inputs (correlation {correlation:.2f})"
    return TimeOrder(None, np.arange(len(Y), dtype=np.float64), reason)


def times_of(column: Any) -> np.ndarray:
    """Return numbers as they are and dates in microseconds; a missing one has that of the row before."""
    filled = column.ffill().bfill()
    if filled.dtype.kind in "iufb":
        return filled.to_numpy(dtype=np.float64)
    if filled.dtype.kind != "M":  # months, quarters
        filled = filled.dt.to_timestamp()
    naive = filled if filled.dt.tz is None else filled.dt.tz_convert(None)
    return naive.to_numpy(dtype="datetime64[us]").astype(np.float64)


def _goes_one_way(column: Any, kind: str) -> bool:
    """Whether a column goes up, or down, from row to row."""
    if kind not in ("date", "number") or column.dtype.kind not in "iufM" or column.notna().mean() < SHARE_FORWARD:
        return False
    times = times_of(column)
    steps = np.diff(times)
    is_one_way = max(np.mean(steps >= 0), np.mean(steps <= 0)) >= SHARE_FORWARD
    return bool(is_one_way and len(np.unique(times)) >= FEWEST_TIMES)


def _is_sorted(Y: np.ndarray) -> bool:
    """Whether the rows are sorted by the target, maybe in pieces, or have its classes one after the other."""
    if Y.shape[1] == 1:
        steps = np.diff(Y[:, 0])
        return bool(max(np.mean(steps >= 0), np.mean(steps <= 0)) >= SHARE_SORTED)
    changes = int((np.diff(Y.argmax(axis=1)) != 0).sum())
    return changes <= 2 * Y.shape[1]


def _as_numbers(frame: Any, kinds: Mapping[str, str], skip: set[str]) -> np.ndarray:
    """Return the numbers, standardized and without holes, and the frequent categories of the inputs."""
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
    """Return what boosted trees predict for rows that they have not learned from."""
    trees, folds = (
        HistGradientBoostingRegressor(max_iter=N_TREES, random_state=0),
        KFold(5, shuffle=True, random_state=0),
    )
    return np.stack([cross_val_predict(trees, X, y, cv=folds) for y in Y.T[:MOST_CLASSES]], axis=1)


def _correlation_of_neighbors(residuals: np.ndarray) -> float:
    centered = residuals - residuals.mean(axis=0)
    total = (centered**2).sum()
    return float((centered[1:] * centered[:-1]).sum() / total) if total > 0 else 0.0

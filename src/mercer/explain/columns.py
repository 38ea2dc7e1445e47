"""A column of a table as something to move along: its values in order, whatever their type."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.tables import TabularModel
from mercer.tables.frames import nearest

# Levels of a category beyond this many are not shown: a curve of them says nothing.
MOST_LEVELS = 60


class Column(NamedTuple):
    """Values of a column in an order, and where the rows are among them.

    Attributes
    ----------
    kind : str
        "number", "date" or "category".
    values : ndarray of shape (k,)
        As the table has them.
    codes : ndarray of shape (n,)
        Of a category, the level of each row; else the row's own value as a number.
    intervals : ndarray of shape (n,)
        The interval between two neighboring values that a row is in.
    nearest : ndarray of shape (n,)
        The value that is nearest to a row's.
    shares : ndarray of shape (n,)
        How far between the two ends of its interval a row is, from 0 to 1.
    used : ndarray of shape (n,)
        The rows of the table that have a value.
    """

    kind: str
    values: np.ndarray
    codes: np.ndarray
    intervals: np.ndarray
    nearest: np.ndarray
    shares: np.ndarray
    used: np.ndarray

    def position_weights(self, some: np.ndarray) -> np.ndarray:
        """Return weights of the values whose sum with a curve is its mean over some rows, of shape (k,)."""
        k, weights = len(self.values), np.zeros(len(self.values))
        np.add.at(weights, self.intervals[some], 1.0 - self.shares[some])
        np.add.at(weights, np.minimum(self.intervals[some] + 1, k - 1), self.shares[some])
        return weights / len(some)


def column_position(column: Any, names: Sequence[str]) -> int:
    """Return the position of a column that is given by name or position."""
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if not -len(names) <= column < len(names):
            raise invalid_parameter("column", column, f"a position from 0 to {len(names) - 1}")
        return int(column) % len(names)
    if column not in names:
        raise invalid_parameter("column", column, f"a column of X{nearest(str(column), names)}")
    return list(names).index(column)


def raw_column(X: Any, position: int) -> np.ndarray:
    """Return the values of one column as they are."""
    return X[:, position] if isinstance(X, np.ndarray) else X.iloc[:, position].to_numpy()


def column_of(model: Any, X: Any, position: int, name: str, n_points: int) -> Column:
    """Return a column with at most n_points values to move along; rows without a value are left out."""
    raw = raw_column(X, position)
    kind, numbers = _as_numbers(model, raw, name)
    if kind == "category":
        return _category(X, raw, position, name)
    used = np.flatnonzero(np.isfinite(numbers))
    if len(np.unique(numbers[used])) < 2:
        raise invalid_parameter("column", name, "one with two different values at least")
    own = numbers[used]
    # Values that rows have: they can be put back into the table as they are, dates in text too.
    order = np.argsort(own, kind="stable")
    picked = order[np.round(np.linspace(0, len(own) - 1, n_points)).astype(int)]
    edges, first = np.unique(own[picked], return_index=True)
    if len(edges) < min(n_points, 3):
        edges, first = np.unique(own, return_index=True)
        picked = first
        first = np.arange(len(edges))
    intervals = np.clip(np.searchsorted(edges, own, side="left") - 1, 0, len(edges) - 2)
    shares = (own - edges[intervals]) / (edges[intervals + 1] - edges[intervals])
    closest = intervals + (shares > 0.5)
    return Column(kind, raw[used][picked[first]], own, intervals, closest, shares, used)


def with_values(X: Any, position: int, column: Column, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return copies of rows of X, each with one of the column's values in that column."""
    taken, new = column.used[rows], column.values[values]
    if isinstance(X, np.ndarray):
        made = X[taken].copy()
        made[:, position] = new
        return made
    made, own = X.iloc[taken].copy(), X.iloc[:, position]
    made.isetitem(position, type(own)(new, index=made.index).astype(own.dtype))
    return made


def _as_numbers(model: Any, raw: np.ndarray, name: str) -> tuple[str, np.ndarray]:
    """Return the kind of a column, and its values as numbers where they have an order."""
    known = model.encoder_.kinds_.get(name) if isinstance(model, TabularModel) else None
    if np.issubdtype(raw.dtype, np.datetime64):
        return "date", np.where(np.isnat(raw), np.nan, raw.astype("datetime64[ns]").astype(np.int64).astype(float))
    if known == "date":
        import pandas as pd

        return _as_numbers(None, pd.to_datetime(pd.Series(raw), errors="coerce").to_numpy(), name)
    if known in ("category", "text") or raw.dtype == bool:
        return "category", raw
    try:
        return "number", raw.astype(np.float64)
    except (TypeError, ValueError):
        return "category", raw


def _category(X: Any, raw: np.ndarray, position: int, name: str) -> Column:
    words = np.array(["(missing)" if value is None or value != value else str(value) for value in raw])
    levels, first, codes = np.unique(words, return_index=True, return_inverse=True)
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise invalid_parameter("column", name, f"one with 2 to {MOST_LEVELS} different values")
    order = _similar_levels_side_by_side(X, position, codes, len(levels))
    place = np.argsort(order)
    codes = place[codes]
    values = np.empty(len(levels), dtype=object)
    values[:] = [raw[first[level]] for level in order]
    intervals = np.minimum(codes, len(levels) - 2)
    shares = (codes - intervals).astype(float)
    return Column("category", values, codes, intervals, codes, shares, np.arange(len(raw)))


def _similar_levels_side_by_side(X: Any, position: int, codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Return the levels in the order of the first principal coordinate of the means of the other columns."""
    others = []
    for k in range(X.shape[1]):
        if k != position:
            kind, numbers = _as_numbers(None, raw_column(X, k), str(k))
            if kind == "category":
                others += [np.asarray([str(value) for value in numbers]) == level for level in set(map(str, numbers))]
            else:
                spread = np.nanstd(numbers) or 1.0
                others.append(np.nan_to_num((numbers - np.nanmean(numbers)) / spread))
    if not others:
        return np.arange(n_levels)
    Z, counts = np.column_stack(others).astype(float), np.bincount(codes, minlength=n_levels)
    means = np.stack([Z[codes == level].mean(axis=0) for level in range(n_levels)])
    means -= counts @ means / counts.sum()
    direction = np.linalg.svd(np.sqrt(counts)[:, None] * means, full_matrices=False)[2][0]
    # Of two directions the one along which the first level, by its name, comes first.
    along = means @ direction
    return np.argsort(along if along[0] <= along[-1] else -along, kind="stable")

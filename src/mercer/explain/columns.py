"""The values of a column in order, whatever its type, and the place of each row among them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.tables import TabularModel
from mercer.tables.frames import nearest

# A category with more levels than this is refused: a curve over so many levels would not be readable.
MOST_LEVELS = 60


class Column(NamedTuple):
    """The values of a column in order, and the place of each row among them.

    Attributes
    ----------
    kind : str
        "number", "date" or "category".
    values : ndarray of shape (k,)
        In order, and as the table holds them: dates may be strings.
    codes : ndarray of shape (n,)
        For a category, the position of each row's level in `values`; otherwise the row's own value as a number.
    intervals : ndarray of shape (n,)
        The interval that each row lies in: interval i is between values[i] and values[i + 1].
    nearest : ndarray of shape (n,)
        The position in `values` of the value nearest to each row's own.
    shares : ndarray of shape (n,)
        How far each row lies from the lower end of its interval, from 0 to 1 at the upper end.
    used : ndarray of shape (n,)
        The n rows of the table that have a value in this column.
    """

    kind: str
    values: np.ndarray
    codes: np.ndarray
    intervals: np.ndarray
    nearest: np.ndarray
    shares: np.ndarray
    used: np.ndarray

    def position_weights(self, some: np.ndarray) -> np.ndarray:
        """Return the weights w, of shape (k,), for which w @ curve is the mean of the curve over some rows."""
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
    """Return the values of one column, unchanged."""
    return X[:, position] if isinstance(X, np.ndarray) else X.iloc[:, position].to_numpy()


def column_of(model: Any, X: Any, position: int, name: str, n_points: int) -> Column:
    """Return a column with at most n_points of its values, or with all levels of a category.

    Rows without a value are left out.
    """
    raw = raw_column(X, position)
    kind, numbers = _as_numbers(model, raw, name)
    if kind == "category":
        return _category(X, raw, position, name)
    used = np.flatnonzero(np.isfinite(numbers))
    if len(np.unique(numbers[used])) < 2:
        raise invalid_parameter("column", name, "one with two different values at least")
    own = numbers[used]
    # Only values that occur are used: they can be put back into the table unchanged, even dates in strings.
    order = np.argsort(own, kind="stable")
    picked = order[np.round(np.linspace(0, len(own) - 1, n_points)).astype(int)]
    edges, first = np.unique(own[picked], return_index=True)
    if len(edges) < min(n_points, 3):
        # Most rows share a value, so that the quantiles coincide: quantiles of the different values are used.
        edges, picked = np.unique(own, return_index=True)
        some = np.unique(np.round(np.linspace(0, len(edges) - 1, n_points)).astype(int))
        edges, picked, first = edges[some], picked[some], np.arange(len(some))
    intervals = np.clip(np.searchsorted(edges, own, side="left") - 1, 0, len(edges) - 2)
    shares = (own - edges[intervals]) / (edges[intervals + 1] - edges[intervals])
    closest = intervals + (shares > 0.5)
    return Column(kind, raw[used][picked[first]], own, intervals, closest, shares, used)


def with_values(X: Any, position: int, column: Column, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return copies of rows of X in which the column has other values.

    `rows` are positions in `column.used`, and `values` the positions in `column.values` of their new values.
    """
    taken, new = column.used[rows], column.values[values]
    if isinstance(X, np.ndarray):
        made = X[taken].copy()
        made[:, position] = new
        return made
    made, own = X.iloc[taken].copy(), X.iloc[:, position]
    made.isetitem(position, type(own)(new, index=made.index).astype(own.dtype))
    return made


def _as_numbers(model: Any, raw: np.ndarray, name: str) -> tuple[str, np.ndarray]:
    """Return the kind of a column and its values: numbers and dates as floats, categories unchanged."""
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
    """Return a category with all its levels, of which similar ones are neighbors."""
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
    # The sign of the direction is arbitrary: it is chosen so that the first level by name precedes the last one.
    along = means @ direction
    return np.argsort(along if along[0] <= along[-1] else -along, kind="stable")

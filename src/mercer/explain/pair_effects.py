"""Interactions: pairs of columns that a learned metric suggests, and what a pair adds beyond its two columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain.columns import Column, column_of, column_position, with_values
from mercer.explain.inputs import check_rows, taken
from mercer.explain.outputs import answers, output_of
from mercer.tables import TabularModel


class PairEffect(NamedTuple):
    """What two columns add to the predictions together, beyond what each adds alone.

    Attributes
    ----------
    names : tuple of two str
    columns : tuple of two str
        The kind of each: "number", "date" or "category".
    output : str
    values : tuple of two ndarrays of shapes (k,) and (l,)
    effect : ndarray of shape (k, l)
        The effect at each pair of values. Along each column, its mean over the rows is about 0.
    counts : ndarray of shape (k - 1, l - 1)
        The number of rows in each cell between neighboring values. An empty cell takes the second difference of the
        nearest cell with rows.
    strength : float
        The root mean square of the effect over the rows, in units of the prediction.
    """

    names: tuple[str, str]
    columns: tuple[str, str]
    output: str
    values: tuple[np.ndarray, np.ndarray]
    effect: np.ndarray
    counts: np.ndarray
    strength: float


def suggested_pairs(
    model: Any, n_pairs: int = 5, *, feature_names: Sequence[str] | None = None
) -> list[tuple[str, str, float]]:
    """Return the pairs of columns with the largest blocks in the learned metric M, and the norms of these blocks.

    A large |M_ij| says that predictions change along a combination of columns i and j. The two may interact, or each
    may only have an effect of its own: `pair_effect` tells which.

    Parameters
    ----------
    model : fitted model with a full metric
        Such as RFMRegressor(metric="full"). Within `mercer.tabular`, a block has all encoded columns of two columns of
        the table.
    n_pairs : int, default=5
        The largest number of pairs.
    feature_names : sequence of str, optional
    """
    metric = getattr(model, "metric_", None)
    if metric is None:
        raise invalid_parameter("model", model, "a fitted model with a learned metric")
    d = model.n_features_in_
    if isinstance(model, TabularModel):
        M, origins = metric.matrix(len(model.encoder_.origins_)), model.encoder_.origins_
    else:
        M, origins = metric.matrix(d), np.arange(d)
    squares = np.zeros((d, d))
    np.add.at(squares, (origins[:, None], origins[None, :]), np.asarray(M) ** 2)
    names = feature_names or getattr(model, "feature_names_in_", None)
    named = [f"x{k}" for k in range(d)] if names is None else [str(name) for name in names]
    first, second = np.triu_indices(d, 1)
    sizes = np.sqrt(squares[first, second])
    order = np.argsort(-sizes, kind="stable")[: check_count("n_pairs", n_pairs)]
    return [(named[first[k]], named[second[k]], float(sizes[k])) for k in order if sizes[k] > 0]


def pair_effect(
    model: Any,
    X: Any,
    columns: Any,
    *,
    n_points: int = 8,
    output: Any = None,
    max_rows: int = 2000,
    feature_names: Sequence[str] | None = None,
    random_state: Any = None,
) -> PairEffect:
    """Return what two columns add to the predictions together, by second-order accumulated local effects.

    Each row moves to the four corners of its cell between neighboring values. The second differences of the predictions
    are averaged in each cell and added up along both columns. Then the effects of each column alone are removed (Apley
    and Zhu, 2020).

    Parameters
    ----------
    model : fitted estimator
    X : data frame or array-like of shape (n, d)
    columns : two of str or int
        Their names or positions.
    n_points : int, default=8
        The largest number of values along each column.
    output : str or int, optional
        See `effect_curve`.
    max_rows : int, default=2000
        The largest number of rows that are used; if X has more, this many are drawn.
    feature_names : sequence of str, optional
    random_state : int, RandomState instance or None, default=None
        Draws these rows.

    Returns
    -------
    PairEffect
    """
    X, names = check_rows(model, X, feature_names)
    positions = check_pair(columns, names)
    if len(X) > check_count("max_rows", max_rows, at_least=2):
        X = taken(X, np.sort(check_random_state(random_state).choice(len(X), max_rows, replace=False)))
    check_count("n_points", n_points, at_least=2)
    found = [column_of(model, X, position, names[position], n_points) for position in positions]
    both = np.intersect1d(found[0].used, found[1].used)
    cells = [np.searchsorted(column.used, both) for column in found]
    at = [column.intervals[own] for column, own in zip(found, cells, strict=True)]
    index, output_name = output_of(model, output)
    differences = np.zeros(len(both))
    for up in (0, 1):
        for right in (0, 1):
            corner = _corner(X, positions, found, both, (at[0] + up, at[1] + right))
            differences += (1 if up == right else -1) * answers(model, corner, index)
    shape = (len(found[0].values) - 1, len(found[1].values) - 1)
    counts = np.zeros(shape)
    np.add.at(counts, tuple(at), 1.0)
    local = np.zeros(shape)
    np.add.at(local, tuple(at), differences)
    local = _filled(np.divide(local, counts, out=np.zeros(shape), where=counts > 0), counts)
    effect = _without_main_effects(accumulated(local), counts)
    here = effect[at[0], at[1]]
    return PairEffect(
        names=(names[positions[0]], names[positions[1]]),
        columns=(found[0].kind, found[1].kind),
        output=output_name,
        values=(found[0].values, found[1].values),
        effect=effect,
        counts=counts.astype(int),
        strength=float(np.sqrt(np.mean(here**2))),
    )


def check_pair(pair: Any, names: list[str]) -> tuple[int, int]:
    """Return the positions of two different columns."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise invalid_parameter("columns", pair, "two columns, by name or position")
    first, second = (column_position(column, names) for column in pair)
    if first == second:
        raise invalid_parameter("columns", pair, "two different columns")
    return first, second


def accumulated(local: np.ndarray) -> np.ndarray:
    """Return the cumulative sums of local effects from the first corner, of shape (k, l)."""
    total = np.zeros((local.shape[0] + 1, local.shape[1] + 1))
    total[1:, 1:] = local.cumsum(axis=0).cumsum(axis=1)
    return total


def _corner(
    X: Any, positions: tuple[int, int], found: list[Column], rows: np.ndarray, values: tuple[np.ndarray, ...]
) -> Any:
    """Return copies of rows with the given values in both columns."""
    first = found[0]._replace(used=rows)
    once = with_values(X, positions[0], first, np.arange(len(rows)), values[0])
    second = found[1]._replace(used=np.arange(len(rows)))
    return with_values(once, positions[1], second, np.arange(len(rows)), values[1])


def _filled(local: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the local effects; an empty cell takes that of the nearest cell with rows."""
    cells = np.argwhere(counts > 0)
    everywhere = np.indices(counts.shape).reshape(2, -1).T
    apart = ((everywhere[:, None] - cells[None]) ** 2).sum(axis=2)
    closest = cells[np.argmin(apart, axis=1)]
    return local[closest[:, 0], closest[:, 1]].reshape(counts.shape)


def _without_main_effects(total: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return accumulated effects minus the effect of each column alone, with mean 0 over the rows."""
    for axis in (0, 1):
        steps = np.diff(total, axis=axis)
        across = 0.5 * (steps[:, 1:] + steps[:, :-1]) if axis == 0 else 0.5 * (steps[1:] + steps[:-1])
        mass = counts.sum(axis=1 - axis)
        mean = np.divide((across * counts).sum(axis=1 - axis), mass, out=np.zeros(len(mass)), where=mass > 0)
        alone = np.concatenate([[0.0], np.cumsum(mean)])
        total = total - (alone[:, None] if axis == 0 else alone[None, :])
    middles: np.ndarray = 0.25 * (total[1:, 1:] + total[1:, :-1] + total[:-1, 1:] + total[:-1, :-1])
    return total - (middles * counts).sum() / counts.sum()

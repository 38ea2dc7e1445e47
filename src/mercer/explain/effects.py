"""How predictions move with one column: accumulated local effects and partial dependence, with bands."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from mercer.checks import check_choice, check_count
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.explain.columns import Column, column_of, column_position, with_values
from mercer.explain.function_variance import weighted_covariance
from mercer.explain.outputs import answers, output_of
from mercer.explain.permutation import check_coverage, check_rows, taken

# Bands ask for covariances between rows, so that they are worked out on at most this many.
BAND_ROWS = 400


class EffectCurve(NamedTuple):
    """How the predictions of a model move with a column.

    Attributes
    ----------
    name : str
        The column.
    kind : str
        "ale" or "partial_dependence".
    column : str
        "number", "date" or "category".
    output : str
        What is predicted: the target, or the class whose probability it is.
    values : ndarray of shape (k,)
        Values of the column as the table has them, ascending; levels of a category in the order of the curve.
    effect : ndarray of shape (k,)
        What a value adds to the mean prediction; its mean over the rows is 0.
    lower, upper : ndarray of shape (k,)
        The band: what the model does not know of its function, where it says so, and what a sample of rows cannot tell.
    counts : ndarray of shape (k,)
        Rows near each value: of a category those at the level, else those nearer to it than to other values.
    band : str
        "function and rows" for models that know the variance of their function, otherwise "rows".
    coverage : float
        Of the band at each value.
    """

    name: str
    kind: str
    column: str
    output: str
    values: np.ndarray
    effect: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    counts: np.ndarray
    band: str
    coverage: float

    @property
    def labels(self) -> list[str]:
        """The values in words."""
        if self.column == "number":
            return [f"{value:.4g}" for value in self.values.astype(np.float64)]
        return [str(value)[:10] if self.column == "date" else str(value) for value in self.values]

    def __str__(self) -> str:
        width = max(len(label) for label in self.labels)
        lines = [f"{self.output} by {self.name}, {self.kind.replace('_', ' ')}, band of {100 * self.coverage:.4g} %"]
        for label, effect, lower, upper in zip(self.labels, self.effect, self.lower, self.upper, strict=True):
            lines.append(f"  {label:<{width}}  {effect:+.4g}  ({lower:+.4g} to {upper:+.4g})")
        return "\n".join(lines)


class Contrasts(NamedTuple):
    """A curve as a linear function of predictions: sum_r weights_kr f(x_r) over made-up rows x_r.

    Attributes
    ----------
    rows : ndarray of shape (r,)
        The row of X that each made-up row is a copy of.
    values : ndarray of shape (r,)
        The value that it has in the column.
    weights : ndarray of shape (k, r)
    """

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray


def effect_curve(
    model: Any,
    X: Any,
    column: Any,
    *,
    kind: str = "ale",
    n_points: int = 20,
    coverage: float = 0.9,
    output: Any = None,
    max_rows: int = 2000,
    feature_names: Sequence[str] | None = None,
    random_state: Any = None,
) -> EffectCurve:
    """Say how the predictions of a fitted model move with one column.

    Accumulated local effects (Apley and Zhu, 2020) move each row to the two ends of the interval of values that it is
    in, average the differences of the predictions there, and add them up: only rows near to those of the table are
    predicted, so that columns that go together are no trouble. Partial dependence gives all rows each value in turn
    and averages; where columns go together it asks about rows that cannot be.

    Parameters
    ----------
    model : fitted estimator
        Anything that predicts. Gaussian processes, also within `mercer.tabular`, give bands of their function.
    X : data frame or array-like of shape (n, d)
    column : str or int
        By name or position.
    kind : {"ale", "partial_dependence"}, default="ale"
    n_points : int, default=20
        Values of the curve at most; a category has one a level.
    coverage : float, default=0.9
        Of the band at each value.
    output : str or int, optional
        The class whose probability is shown, or the position of a target. The last class of two by default, else the
        first.
    max_rows : int, default=2000
        Rows that are predicted at most; drawn if there are more.
    feature_names : sequence of str, optional
    random_state : int, RandomState instance or None, default=None
        Draws these rows, and those of the band.

    Returns
    -------
    EffectCurve

    Notes
    -----
    Two predictions a row for accumulated local effects, n_points a row for partial dependence. The curve is a linear
    function of predictions; its variance under a Gaussian process is that of the process at the rows, of which at
    most 400 are asked about. Levels of a category are put in the order of the first principal coordinate of the means
    of the other columns, and rows move to the neighboring levels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from mercer.explain import effect_curve
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = LinearRegression().fit(X, 2 * X[:, 0])
    >>> curve = effect_curve(model, X, 0, n_points=5)
    >>> bool(np.allclose(np.diff(curve.effect), 2 * np.diff(curve.values)))
    True
    """
    check_choice("kind", kind, ("ale", "partial_dependence"))
    n_points, coverage = check_count("n_points", n_points, at_least=2), check_coverage(coverage)
    X, names = check_rows(model, X, feature_names)
    position, random = column_position(column, names), check_random_state(random_state)
    if len(X) > check_count("max_rows", max_rows, at_least=2):
        X = taken(X, np.sort(random.choice(len(X), max_rows, replace=False)))
    found = column_of(model, X, position, names[position], n_points)
    index, output_name = output_of(model, output)
    make = _local_contrasts if kind == "ale" else _global_contrasts
    all_rows = make(found, np.arange(len(found.codes)))
    values = answers(model, with_values(X, position, found, all_rows.rows, all_rows.values), index)
    effect = all_rows.weights @ values
    variance = _sampling_variance(all_rows, values, len(found.codes))
    some = np.sort(random.choice(len(found.codes), min(_band_rows(kind, found), len(found.codes)), replace=False))
    few = make(found, some)
    own = weighted_covariance(model, with_values(X, position, found, few.rows, few.values), few.weights, index)
    if own is not None:
        variance = variance + np.diag(own)
    half = norm.ppf(0.5 + 0.5 * coverage) * np.sqrt(np.maximum(variance, 0.0))
    counts = np.bincount(found.nearest, minlength=len(found.values))
    return EffectCurve(
        names[position],
        kind,
        found.kind,
        output_name,
        found.values,
        effect,
        effect - half,
        effect + half,
        counts,
        "rows" if own is None else "function and rows",
        coverage,
    )


def effect_curves(model: Any, X: Any, columns: Sequence[Any] | None = None, **options: Any) -> list[EffectCurve]:
    """Return the effect curves of several columns, by default all that have two values; see `effect_curve`.

    Parameters
    ----------
    model : fitted estimator
    X : data frame or array-like of shape (n, d)
    columns : sequence of str or int, optional
    **options : of effect_curve
    """
    _, names = check_rows(model, X, options.get("feature_names"))
    curves = []
    for column in range(len(names)) if columns is None else columns:
        try:
            curves.append(effect_curve(model, X, column, **options))
        except ValueError as error:
            if columns is not None or "different values" not in str(error):
                raise
            warn_user(f"no effect curve of {names[column]!r}: {error}", DataWarning)
    return curves


# ---- the curves as linear functions of predictions -------------------------------------------------------------


def _local_contrasts(column: Column, some: np.ndarray) -> Contrasts:
    """Return accumulated local effects over some rows: differences over each interval, added up and centered."""
    k, lower, rows = len(column.values), [], []
    if column.kind == "category":
        # A row at level j moves to j + 1 and to j - 1: it is in both intervals.
        codes = column.codes[some]
        for step in (0, -1):
            inside = (codes + step >= 0) & (codes + step < k - 1)
            rows.append(some[inside])
            lower.append(codes[inside] + step)
    else:
        rows.append(some)
        lower.append(np.clip(column.intervals[some], 0, k - 2))
    row, low = np.concatenate(rows), np.concatenate(lower)
    in_interval = np.bincount(low, minlength=k - 1)
    # An interval without rows, of few drawn ones, adds nothing.
    mean = np.zeros((k - 1, len(row)))
    mean[low, np.arange(len(row))] = 1.0 / in_interval[low]
    summed = np.vstack([np.zeros((1, len(row))), np.cumsum(mean, axis=0)])
    centered = summed - column.position_weights(some) @ summed
    return Contrasts(
        np.concatenate([row, row]), np.concatenate([low + 1, low]), np.concatenate([centered, -centered], axis=1)
    )


def _global_contrasts(column: Column, some: np.ndarray) -> Contrasts:
    """Return partial dependence over some rows: means of predictions with each value, centered."""
    k, n = len(column.values), len(some)
    weights = np.kron(np.eye(k), np.full((1, n), 1.0 / n))
    weights -= column.position_weights(some) @ weights
    return Contrasts(np.tile(some, k), np.repeat(np.arange(k), n), weights)


def _band_rows(kind: str, column: Column) -> int:
    return BAND_ROWS if kind == "ale" else max(BAND_ROWS // len(column.values), 20)


def _sampling_variance(contrasts: Contrasts, values: np.ndarray, n: int) -> np.ndarray:
    """Return the variance of a curve over samples of rows: that of the sums of each row's own terms."""
    terms = contrasts.weights * values
    by_row = np.zeros((len(terms), n))
    for k, term in enumerate(terms):
        by_row[k] = np.bincount(contrasts.rows, weights=term, minlength=n)
    apart = by_row - by_row.mean(axis=1, keepdims=True)
    return (apart**2).sum(axis=1) * n / max(n - 1, 1)


def check_pair(pair: Any, names: list[str]) -> tuple[int, int]:
    """Return the positions of two different columns."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise invalid_parameter("columns", pair, "two columns, by name or position")
    first, second = (column_position(column, names) for column in pair)
    if first == second:
        raise invalid_parameter("columns", pair, "two different columns")
    return first, second

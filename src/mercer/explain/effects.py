"""How predictions change with one column: accumulated local effects and partial dependence, with bands."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from mercer.checks import check_choice, check_count
from mercer.exceptions import DataWarning, warn_user
from mercer.explain.columns import Column, column_of, column_position, with_values
from mercer.explain.function_variance import weighted_covariance
from mercer.explain.inputs import check_coverage, check_rows, taken
from mercer.explain.outputs import answers, output_of

# Bands need the covariances between rows, so they are computed on at most this many rows.
BAND_ROWS = 400


class EffectCurve(NamedTuple):
    """How the predictions of a model change with one column.

    Attributes
    ----------
    name : str
        The column.
    kind : str
        "ale" or "partial_dependence".
    column : str
        "number", "date" or "category".
    output : str
        What is predicted: a target, or the probability of a class.
    values : ndarray of shape (k,)
        Values of the column as the table holds them, ascending; levels of a category in the order of the curve.
    effect : ndarray of shape (k,)
        What each value adds to the mean prediction; the mean of the curve over the rows is 0.
    lower, upper : ndarray of shape (k,)
        The band. It covers the uncertainty from a finite sample of rows and, for models that know the variance of their
        function, the uncertainty about the function.
    counts : ndarray of shape (k,)
        The number of rows for which this value is the nearest; for a category, the number of rows at each level.
    band : str
        What the band covers: "function and rows" for models that know the variance of their function, otherwise "rows".
    coverage : float
        The coverage of the band at each single value.
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
        """The values as text."""
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
    """A curve as a linear function of predictions: sum_r weights_kr f(x_r), where the rows x_r are changed copies.

    Attributes
    ----------
    rows : ndarray of shape (r,)
        The row that each x_r is a copy of, as a position in `Column.used`.
    values : ndarray of shape (r,)
        The value that x_r has in the column, as a position in `Column.values`.
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
    """Return how the predictions of a fitted model change with one column.

    Accumulated local effects (Apley and Zhu, 2020) move each row to the two ends of its interval between neighboring
    values. The differences of the two predictions are averaged in each interval, and the averages are added up. Only
    rows close to those of the table are predicted, so correlated columns do no harm. Partial dependence gives all rows
    each value in turn and averages the predictions. If columns are correlated, it evaluates rows that cannot occur.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts. For Gaussian processes, also within `mercer.tabular`, the band covers the
        uncertainty about the function too.
    X : data frame or array-like of shape (n, d)
    column : str or int
        Its name or position.
    kind : {"ale", "partial_dependence"}, default="ale"
        "ale" means accumulated local effects.
    n_points : int, default=20
        The largest number of values on the curve; a category has one value for each level.
    coverage : float, default=0.9
        The coverage of the band at each single value.
    output : str or int, optional
        The class whose probability is shown, or the position of a target. By default the second of two classes, or the
        first of several classes or targets.
    max_rows : int, default=2000
        The largest number of rows that are used; if X has more, this many are drawn.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    random_state : int, RandomState instance or None, default=None
        Draws these rows, and the rows for the band.

    Returns
    -------
    EffectCurve

    Notes
    -----
    Accumulated local effects take two predictions for each row (at most four for a category), and partial dependence
    takes n_points. The curve is a linear function of predictions. Its variance under a Gaussian process follows from
    the covariance of the process at the rows, of which at most 400 are used. The levels of a category are ordered by
    the first principal coordinate of the means of the other columns, and rows move to the neighboring levels.

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
        name=names[position],
        kind=kind,
        column=found.kind,
        output=output_name,
        values=found.values,
        effect=effect,
        lower=effect - half,
        upper=effect + half,
        counts=counts,
        band="rows" if own is None else "function and rows",
        coverage=coverage,
    )


def effect_curves(model: Any, X: Any, columns: Sequence[Any] | None = None, **options: Any) -> list[EffectCurve]:
    """Return the effect curves of several columns.

    By default all columns are tried, and those without a curve, such as constant ones, are skipped with a warning.

    Parameters
    ----------
    model : fitted estimator
    X : data frame or array-like of shape (n, d)
    columns : sequence of str or int, optional
        By name or position.
    **options
        Passed to `effect_curve`.
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
    """Return accumulated local effects over some rows: mean differences in each interval, summed and centered."""
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
    # If few rows were drawn, an interval may have none: it adds nothing.
    mean = np.zeros((k - 1, len(row)))
    mean[low, np.arange(len(row))] = 1.0 / in_interval[low]
    summed = np.vstack([np.zeros((1, len(row))), np.cumsum(mean, axis=0)])
    centered = summed - column.position_weights(some) @ summed
    return Contrasts(
        np.concatenate([row, row]), np.concatenate([low + 1, low]), np.concatenate([centered, -centered], axis=1)
    )


def _global_contrasts(column: Column, some: np.ndarray) -> Contrasts:
    """Return partial dependence over some rows: the mean prediction with each value, centered."""
    k, n = len(column.values), len(some)
    weights = np.kron(np.eye(k), np.full((1, n), 1.0 / n))
    weights -= column.position_weights(some) @ weights
    return Contrasts(np.tile(some, k), np.repeat(np.arange(k), n), weights)


def _band_rows(kind: str, column: Column) -> int:
    """Return how many rows the band is computed on: partial dependence makes k changed copies of each."""
    return BAND_ROWS if kind == "ale" else max(BAND_ROWS // len(column.values), 20)


def _sampling_variance(contrasts: Contrasts, values: np.ndarray, n: int) -> np.ndarray:
    """Return the variance of a curve over samples of n rows, from the sum of each row's own terms."""
    terms = contrasts.weights * values
    by_row = np.zeros((len(terms), n))
    for k, term in enumerate(terms):
        by_row[k] = np.bincount(contrasts.rows, weights=term, minlength=n)
    apart = by_row - by_row.mean(axis=1, keepdims=True)
    return (apart**2).sum(axis=1) * n / max(n - 1, 1)

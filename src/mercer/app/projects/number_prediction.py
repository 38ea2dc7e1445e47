"""What a model of a table says of a number: its mean, how sure it is, and the interval that the number lies in."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.app.projects.table_scores import LEVEL, Spread
from mercer.exceptions import DataWarning, warn_user
from mercer.plots.reliability import LEVELS
from mercer.tables import TabularModel
from mercer.tabular_models.gp import GPRegressor

# Two levels that are meant to be equal differ by less than this.
ROUNDING = 1e-9


class NumberPrediction(NamedTuple):
    """Predictions of numbers.

    Attributes
    ----------
    mean : ndarray of shape (n,)
    std : ndarray of shape (n,) or None
        Of a new target; None for models that have no spread of their own, as are the ends.
    lower, upper : ndarray of shape (n,) or None
        The ends of the intervals.
    """

    mean: np.ndarray
    std: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


class NumberJudgment(NamedTuple):
    """How sure a model was of numbers that are known.

    Attributes
    ----------
    spread : Spread
    narrowest : ndarray of shape (n,)
        The level of the narrowest interval that holds the number, of those of `mercer.plots.reliability.LEVELS`; 1
        where none does.
    """

    spread: Spread
    narrowest: np.ndarray


def predict_numbers(model: TabularModel, table: Any, level: float = LEVEL) -> NumberPrediction:
    """Return what a model predicts, with the intervals of a Gaussian process.

    Parameters
    ----------
    model : TabularModel
        Fitted. If it is a process fitted with `interval_folds`, intervals are those with a guarantee ("cv+"); else they
        are quantiles of its own predictive distribution.
    table : data frame
    level : float, default=0.9
        The probability that intervals are to have.
    """
    if not isinstance(model.estimator_, GPRegressor):
        return NumberPrediction(model.predict(table))
    X = model.encoder_.transform(table)
    mean, std = model.estimator_.predict(X, return_std=True)
    return NumberPrediction(mean, std, *intervals(model.estimator_, X, level).T)


def judge_numbers(model: TabularModel, table: Any, y: np.ndarray) -> NumberJudgment:
    """Return how sure a Gaussian process was of the targets of rows.

    Parameters
    ----------
    model : TabularModel
        A fitted GPRegressor.
    table : data frame
    y : ndarray of shape (n,)
    """
    X = model.encoder_.transform(table)
    levels = [*LEVELS[::-1], LEVEL]
    found = intervals_of_levels(model.estimator_, X, levels)
    narrowest = np.ones(len(y))
    for level, (lower, upper) in zip(levels[:-1], found[:-1], strict=True):
        narrowest[(lower <= y) & (y <= upper)] = level
    spread = Spread(model.estimator_.log_density(X, y), found[-1].T)
    return NumberJudgment(spread, narrowest)


def conformal_width(true: np.ndarray, predicted: np.ndarray, level: float) -> float | None:
    """Return the k-th smallest absolute error of rows left out, k = ceil((n + 1) level), or None if n is below k.

    Parameters
    ----------
    true, predicted : ndarray of shape (n,)
    level : float
    """
    errors = np.sort(np.abs(true - predicted))
    k = math.ceil((len(errors) + 1) * level)
    if k > len(errors):
        warn_user(
            f"{len(errors)} left-out rows are too few for intervals of level {level:g}: they are left out.", DataWarning
        )
        return None
    return float(errors[k - 1])


def intervals(process: GPRegressor, X: Any, level: float) -> np.ndarray:
    """Return the ends of the best intervals that a process has, of shape (n, 2)."""
    return intervals_of_levels(process, X, [level])[0].T


def intervals_of_levels(process: GPRegressor, X: Any, levels: Sequence[float]) -> np.ndarray:
    """Return the ends of the best intervals that a process has, of shape (levels, 2, n).

    Quantiles of all levels come from one predictive distribution, which is what takes the time.
    """
    if process.interval_folds is not None:
        return np.stack([process.predict_interval(X, level, method="cv+").T for level in levels])
    ends = [end for level in levels for end in (0.5 * (1.0 - level), 1.0 - 0.5 * (1.0 - level))]
    return process.predict_quantiles(X, ends).T.reshape(len(levels), 2, -1)

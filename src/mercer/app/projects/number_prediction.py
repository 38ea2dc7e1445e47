"""Predictions of numbers: the mean, the standard deviation, and intervals."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.app.projects.table_scores import LEVEL, Spread
from mercer.exceptions import DataWarning, warn_user
from mercer.plots.reliability import LEVELS
from mercer.tables import TabularModel
from mercer.tabular_models.gp import GPRegressor

# Levels that differ by less than this are equal up to rounding.
ROUNDING = 1e-9


class NumberPrediction(NamedTuple):
    """Predictions of numbers.

    Attributes
    ----------
    mean : ndarray of shape (n,)
    std : ndarray of shape (n,) or None
        The standard deviation of a new target; None for models that do not predict one.
    lower, upper : ndarray of shape (n,) or None
        The ends of the intervals; None for models that do not predict a standard deviation.
    """

    mean: np.ndarray
    std: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


class NumberJudgment(NamedTuple):
    """How sure a model was of targets that are known.

    Attributes
    ----------
    spread : Spread
    narrowest : ndarray of shape (n,)
        The level of the narrowest interval that holds the target, among those of `mercer.plots.reliability.LEVELS`; 1
        if none does.
    """

    spread: Spread
    narrowest: np.ndarray


def predict_numbers(model: TabularModel, table: Any, level: float = LEVEL) -> NumberPrediction:
    """Return the predictions of a model, with standard deviations and intervals if it is a Gaussian process.

    Parameters
    ----------
    model : TabularModel
        Fitted. The intervals of a Gaussian process that was fitted with `interval_folds` have a guarantee ("cv+");
        otherwise they are quantiles of its predictive distribution.
    table : data frame
    level : float, default=0.9
        The probability with which an interval should hold the target.
    """
    if not isinstance(model.estimator_, GPRegressor):
        return NumberPrediction(model.predict(table))
    X = model.encoder_.transform(table)
    mean, std = model.estimator_.predict(X, return_std=True)
    return NumberPrediction(mean, std, *intervals(model.estimator_, X, level).T)


def judge_numbers(model: TabularModel, table: Any, y: np.ndarray) -> NumberJudgment:
    """Return how sure a Gaussian process was of the targets of some rows.

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
    """Return the half-width of split conformal intervals; warn and return None if there are too few rows.

    It is the k-th smallest absolute error of the n rows left out, with k = ceil((n + 1) level), which needs n >= k.

    Parameters
    ----------
    true, predicted : ndarray of shape (n,)
    level : float
    """
    errors = np.sort(np.abs(true - predicted))
    k = math.ceil((len(errors) + 1) * level)
    if k > len(errors):
        warn_user(
            f"{len(errors)} left-out rows are too few for intervals of level {level:g}: none are given.", DataWarning
        )
        return None
    return float(errors[k - 1])


def intervals(process: GPRegressor, X: Any, level: float) -> np.ndarray:
    """Return the ends of the intervals of a Gaussian process at one level, of shape (n, 2); see `predict_numbers`."""
    return intervals_of_levels(process, X, [level])[0].T


def intervals_of_levels(process: GPRegressor, X: Any, levels: Sequence[float]) -> np.ndarray:
    """Return the ends of the intervals of a Gaussian process at several levels, of shape (levels, 2, n).

    The quantiles of all levels come from one predictive distribution, whose computation takes most of the time.
    """
    if process.interval_folds is not None:
        return np.stack([process.predict_interval(X, level, method="cv+").T for level in levels])
    ends = [end for level in levels for end in (0.5 * (1.0 - level), 1.0 - 0.5 * (1.0 - level))]
    return process.predict_quantiles(X, ends).T.reshape(len(levels), 2, -1)

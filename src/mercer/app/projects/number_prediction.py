"""What a model of a table says of a number: its mean, how sure it is, and the interval that the number lies in."""

from typing import Any, NamedTuple

import numpy as np

from mercer.app.projects.table_scores import LEVEL, Spread
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
        Of an observation; None for models that have no spread of their own, as are the ends.
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
    narrowest = np.ones(len(y))
    for level in LEVELS[::-1]:
        lower, upper = intervals(model.estimator_, X, level).T
        narrowest[(lower <= y) & (y <= upper)] = level
    spread = Spread(model.estimator_.log_density(X, y), intervals(model.estimator_, X, LEVEL))
    return NumberJudgment(spread, narrowest)


def intervals(process: GPRegressor, X: Any, level: float) -> np.ndarray:
    """Return the ends of the best intervals that a process has, of shape (n, 2)."""
    return process.predict_interval(X, level, method="model" if process.interval_folds is None else "cv+")

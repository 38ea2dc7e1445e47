"""How good predictions for held-out rows are, beside what simple models of scikit-learn do on the same table."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from mercer.embedding.linear_probe import balanced_accuracy
from mercer.metrics import interval_halfwidth

# The probability of the intervals that are scored.
LEVEL = 0.9
RIDGES = np.logspace(-3, 3, 13)
# Probabilities of 0 count as this, the rounding of 1: one row then costs 36, not infinity.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


class Spread(NamedTuple):
    """How sure predictions of numbers were.

    Attributes
    ----------
    log_density : ndarray of shape (n,)
        Of the targets.
    interval : ndarray of shape (n, 2)
        The ends of the 90 % intervals.
    """

    log_density: np.ndarray
    interval: np.ndarray

    @classmethod
    def gaussian(cls, y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> "Spread | None":
        """Return that of N(mean, std^2); None where a deviation is 0."""
        if not np.all(std > 0):
            return None
        half = interval_halfwidth(LEVEL) * std
        return cls(norm.logpdf(y, mean, std), np.column_stack([mean - half, mean + half]))


def regression_scores(y: np.ndarray, mean: np.ndarray, spread: Spread | None = None) -> dict[str, float | None]:
    """Return errors of predicted numbers; likelihood and coverage of 90 % intervals where there is a spread.

    Parameters
    ----------
    y, mean : ndarray of shape (n,)
    spread : Spread, optional
    """
    scores = {
        "rmse": float(root_mean_squared_error(y, mean)),
        "r2": float(r2_score(y, mean)) if len(y) > 1 else None,
        "mae": float(mean_absolute_error(y, mean)),
        "nll": None,
        "coverage": None,
    }
    if spread is not None:
        lower, upper = spread.interval.T
        inside = (lower <= y) & (y <= upper)
        scores |= {"nll": -float(np.mean(spread.log_density)), "coverage": float(np.mean(inside))}
    return scores


def classification_scores(
    y: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray, classes: np.ndarray
) -> dict[str, float | None]:
    """Return accuracy, accuracy averaged over the classes, and the mean of -log(probability of the right class).

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
    probabilities : ndarray of shape (n, n_classes)
    classes : ndarray of shape (n_classes,)
        Sorted. A class of y that is not among them had the probability 0.
    """
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    right = np.where(classes[place] == y, probabilities[np.arange(len(y)), place], 0.0)
    return {
        "accuracy": float(np.mean(predicted == y)),
        "balanced_accuracy": balanced_accuracy(y, predicted),
        "log_loss": -float(np.mean(np.log(right.astype(np.float64).clip(min=SMALLEST_PROBABILITY)))),
    }


def baseline_scores(
    task: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, random_state: Any
) -> list[dict[str, Any]]:
    """Return the scores of simple models: a constant, a linear model, gradient-boosted trees with their defaults.

    Parameters
    ----------
    task : {"regression", "classification"}
    X, X_test : ndarray of shape (n, d) and (n_test, d)
        The encoded table.
    y, y_test : ndarray of shape (n,) and (n_test,)
    random_state : int, RandomState instance or None
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a linear model that has not converged to the last digit is still a baseline
        if task == "regression":
            return [
                {
                    "name": name,
                    **regression_scores(y_test, mean, std if std is None else Spread.gaussian(y_test, mean, std)),
                }
                for name, mean, std in _regressions(X, y, X_test, random_state)
            ]
        return [
            {
                "name": name,
                **classification_scores(y_test, model.predict(X_test), model.predict_proba(X_test), model.classes_),
            }
            for name, model in _classifiers(X, y, random_state)
        ]


def _regressions(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, random_state: Any
) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    constant = DummyRegressor().fit(X, y)
    yield "mean of the target", constant.predict(X_test), np.full(len(X_test), y.std())
    linear = RidgeCV(RIDGES).fit(X, y)
    # Its score is minus the mean squared leave-one-out error: a spread as honest as ours.
    yield "ridge regression", linear.predict(X_test), np.full(len(X_test), np.sqrt(max(-linear.best_score_, 0.0)))
    trees = HistGradientBoostingRegressor(random_state=random_state).fit(X, y)
    yield "gradient-boosted trees", trees.predict(X_test), None


def _classifiers(X: np.ndarray, y: np.ndarray, random_state: Any) -> Iterator[tuple[str, Any]]:
    yield "most frequent class", DummyClassifier(strategy="prior").fit(X, y)
    yield "logistic regression", LogisticRegression(max_iter=1000).fit(X, y)
    yield "gradient-boosted trees", HistGradientBoostingClassifier(random_state=random_state).fit(X, y)

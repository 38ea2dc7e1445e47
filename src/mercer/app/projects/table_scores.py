"""Scores of predictions for left-out rows: errors and likelihood of numbers, accuracy and log loss of classes."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from mercer.app.projects.baselines import Answers
from mercer.app.projects.class_scores import ranking_scores
from mercer.embedding.linear_probe import balanced_accuracy
from mercer.metrics import interval_halfwidth

# The level of the intervals that are scored.
LEVEL = 0.9
# Smaller probabilities count as this, so that a row costs at most 36 in the log loss, not infinity.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


class Spread(NamedTuple):
    """How sure predictions of numbers were.

    Attributes
    ----------
    log_density : ndarray of shape (n,)
        The logarithm of the predictive density at each target.
    interval : ndarray of shape (n, 2)
        The ends of the 90 % intervals.
    """

    log_density: np.ndarray
    interval: np.ndarray

    @classmethod
    def gaussian(cls, y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> "Spread | None":
        """Return the spread of N(mean, std^2); None if any standard deviation is 0."""
        if not np.all(std > 0):
            return None
        half = interval_halfwidth(LEVEL) * std
        return cls(norm.logpdf(y, mean, std), np.column_stack([mean - half, mean + half]))


def regression_scores(y: np.ndarray, mean: np.ndarray, spread: Spread | None = None) -> dict[str, float | None]:
    """Return the errors of predicted numbers and, if a spread is given, likelihood and coverage of 90 % intervals.

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
        Sorted. A class of y that is not among them has the probability 0.
    """
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    right = np.where(classes[place] == y, probabilities[np.arange(len(y)), place], 0.0)
    return {
        "accuracy": float(np.mean(predicted == y)),
        "balanced_accuracy": balanced_accuracy(y, predicted),
        "log_loss": -float(np.mean(np.log(right.astype(np.float64).clip(min=SMALLEST_PROBABILITY)))),
    }


def scores_of(task: str, y: np.ndarray, answers: Answers) -> dict[str, Any]:
    """Return the name and the scores of the predictions of one model.

    Parameters
    ----------
    task : {"regression", "classification"}
    y : ndarray of shape (n,)
    answers : Answers
    """
    if task == "regression":
        spread = None if answers.std is None else Spread.gaussian(y, answers.predicted, answers.std)
        return {"name": answers.name, **regression_scores(y, answers.predicted, spread)}
    probabilities, classes = answers.of_classes()
    scores = classification_scores(y, answers.predicted, probabilities, classes)
    return {"name": answers.name, **scores, **ranking_scores(y, probabilities, classes)}

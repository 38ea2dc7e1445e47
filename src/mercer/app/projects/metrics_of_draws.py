"""Scores of weighted rows: of all rows once, and of every draw of a bootstrap."""

import numpy as np

from mercer.app.projects.baselines import Answers
from mercer.app.projects.class_scores import ranking_scores
from mercer.exceptions import invalid_parameter

SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
# The score by which a model is judged by default, and all that can be asked for.
MAIN = {"regression": "rmse", "classification": "log_loss"}
METRICS = {
    "regression": ("rmse", "mae", "r2"),
    "classification": ("log_loss", "accuracy", "balanced_accuracy", "auc", "average_precision"),
}
HIGHER_IS_BETTER = ("r2", "accuracy", "balanced_accuracy", "auc", "average_precision")
# These scores sort the rows for each draw, which takes time, so that fewer draws are used for them.
RANKING, MOST_RANKED = ("auc", "average_precision"), 200


def check_metric(metric: str, task: str) -> str:
    """Return the score to judge by, where "auto" is the main one of the task; raise if the task does not have it."""
    if metric == "auto":
        return MAIN[task]
    if metric not in METRICS[task]:
        raise invalid_parameter("metric", metric, ["auto", *METRICS[task]], f"The task is {task}.")
    return metric


def sign_of(metric: str) -> int:
    """Return 1 for scores for which lower is better, and -1 for the others."""
    return -1 if metric in HIGHER_IS_BETTER else 1


def losses_of(task: str, y: np.ndarray, answers: Answers) -> dict[str, np.ndarray]:
    """Return the losses of each row. The scores are computed from their means.

    Parameters
    ----------
    task : {"regression", "classification"}
    y : ndarray of shape (n,)
    answers : Answers
    """
    if task == "regression":
        errors = y - answers.predicted
        return {"square": errors**2, "size": np.abs(errors)}
    probabilities, classes = answers.of_classes()
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    right = np.where(classes[place] == y, probabilities[np.arange(len(y)), place], 0.0).astype(np.float64)
    return {"log": -np.log(right.clip(min=SMALLEST_PROBABILITY)), "right": (answers.predicted == y).astype(np.float64)}


def scores_of_draws(metric: str, y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Return a score for each draw.

    Parameters
    ----------
    metric : str
    y : ndarray of shape (n,)
    answers : Answers
    weights : ndarray of shape (draws, n)
        How much each row counts. They sum to 1 in each draw.

    Returns
    -------
    ndarray of shape (draws,)
        At most 200 draws for AUC and average precision. NaN for a draw with one class only.
    """
    task = "regression" if metric in METRICS["regression"] else "classification"
    losses = losses_of(task, y, answers)
    if metric == "rmse":
        return np.sqrt(weights @ losses["square"])
    if metric == "r2":
        spread = weights @ y**2 - (weights @ y) ** 2
        return 1.0 - weights @ losses["square"] / np.maximum(spread, 1e-300)
    if metric == "balanced_accuracy":
        found = []
        for label in np.unique(y):
            mine = weights[:, y == label]
            with np.errstate(invalid="ignore"):
                found.append(mine @ losses["right"][y == label] / mine.sum(axis=1))
        return np.nanmean(found, axis=0)
    if metric in RANKING:
        probabilities, classes = answers.of_classes()
        scores = (ranking_scores(y, probabilities, classes, own)[metric] for own in weights[:MOST_RANKED])
        return np.array([np.nan if score is None else score for score in scores])
    return weights @ losses[{"mae": "size", "log_loss": "log", "accuracy": "right"}[metric]]


def score(metric: str, y: np.ndarray, answers: Answers) -> float:
    """Return the score over all rows, each of which counts once."""
    return float(scores_of_draws(metric, y, answers, np.full((1, len(y)), 1.0 / len(y)))[0])

"""Bootstrap intervals of a score, which is uncertain as few rows are left out, and paired intervals of two models."""

from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.app.projects.baselines import Answers
from mercer.app.projects.metrics_of_draws import RANKING, losses_of, score, scores_of_draws, sign_of
from mercer.app.projects.table_split import SplitPlan
from mercer.app.projects.tail_mean import draws_of_mean

LEVEL = 0.9
# The number of draws, the fewest (there are fewer draws of many rows), and the most weights that are in memory at once.
DRAWS, FEWEST_DRAWS, MOST_WEIGHTS = 1000, 50, 5_000_000
# There is no interval for fewer rows, or groups of rows, than this.
FEWEST = 10


def score_intervals(
    task: str,
    y: np.ndarray,
    answers: Answers,
    random: np.random.RandomState,
    clusters: np.ndarray | None = None,
    asked: str = "",
) -> dict[str, list[float]]:
    """Return intervals that hold the score on all rows of this kind with probability 0.9; none for too few rows.

    The interval of a mean of losses is that of the studentized bootstrap of its logarithm, which allows for skewness;
    its upper end also allows for losses larger than all that were seen (`draws_of_mean`). Accuracy has Wilson's
    interval, and other scores have percentiles of the draws. With clusters, whole clusters are drawn and all intervals
    are percentiles.

    Parameters
    ----------
    task : {"regression", "classification"}
    y : ndarray of shape (n,)
    answers : Answers
    random : RandomState
    clusters : ndarray of int of shape (n,) or None
        The same number for rows that belong together: groups, or stretches of time.
    asked : str, default=""
        A further score to compute an interval for. Balanced accuracy, AUC and average precision have one only if they
        are asked for, since their draws take time.
    """
    if _n_drawn(y, clusters) < FEWEST:
        return {}
    losses = losses_of(task, y, answers)
    weights = _weights(len(y), random, clusters)
    if task == "regression":
        found = {
            "rmse": [float(np.sqrt(end)) for end in _of_mean(losses["square"], weights, clusters, random)],
            "mae": _of_mean(losses["size"], weights, clusters, random),
        }
        return found | ({"r2": _percentiles(scores_of_draws("r2", y, answers, weights))} if np.ptp(y) > 0 else {})
    accuracy = _wilson(losses["right"]) if clusters is None else _percentiles(weights @ losses["right"])
    found = {"log_loss": _of_mean(losses["log"], weights, clusters, random), "accuracy": accuracy}
    if asked in ("balanced_accuracy", *RANKING):
        draws = scores_of_draws(asked, y, answers, weights)
        if np.isfinite(draws).sum() >= FEWEST_DRAWS:
            found[asked] = _percentiles(draws[np.isfinite(draws)])
    return found


def compare(
    metric: str,
    y: np.ndarray,
    answers: Answers,
    others: list[Answers],
    random: np.random.RandomState,
    clusters: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return how much a model is better than the best of others, with a paired interval.

    The same rows are drawn for both models, so that rows that are hard for both do not widen the interval. The best of
    the others is chosen on the same rows, which is in its favor. Empty if there are too few rows, or no others.

    Parameters
    ----------
    metric : str
    y, answers, random, clusters
        As in `score_intervals`.
    others : list of Answers

    Returns
    -------
    dict
        `score`, the metric; `baseline`, the name of the best of the others; `better_by`, and the ends of its interval,
        `low` and `high`. They are positive if the model is better, for scores that should be low as for others.
    """
    if _n_drawn(y, clusters) < FEWEST or not others:
        return {}
    sign = sign_of(metric)
    best = min(others, key=lambda other: sign * score(metric, y, other))
    weights = _weights(len(y), random, clusters)
    gains = sign * (scores_of_draws(metric, y, best, weights) - scores_of_draws(metric, y, answers, weights))
    better_by = sign * (score(metric, y, best) - score(metric, y, answers))
    gains = gains[np.isfinite(gains)]
    if not len(gains) or not np.isfinite(better_by):
        return {}
    low, high = _percentiles(gains)
    return {"score": metric, "baseline": best.name, "better_by": float(better_by), "low": low, "high": high}


def clusters_of(plan: SplitPlan, rows: np.ndarray) -> np.ndarray | None:
    """Return which rows belong together in a split: stretches of time, or groups; None if rows are independent."""
    if plan.times is not None:
        return stretches_of(plan.times[rows])
    return None if plan.groups is None else plan.groups[rows]


def stretches_of(times: np.ndarray) -> np.ndarray:
    """Return the number of the stretch of time that each row is in: there are about n^(2/3) stretches of equal length.

    Rows that follow each other have similar errors. If they were drawn one by one, intervals would be too narrow.

    Parameters
    ----------
    times : ndarray of shape (n,)
    """
    n_stretches = max(1, round(len(times) ** (2 / 3)))
    ranks = np.argsort(np.argsort(times, kind="stable"), kind="stable")
    return ranks * n_stretches // len(times)


def _n_drawn(y: np.ndarray, clusters: np.ndarray | None) -> int:
    return len(y) if clusters is None else len(np.unique(clusters))


def _weights(n: int, random: np.random.RandomState, clusters: np.ndarray | None) -> np.ndarray:
    """Return how much each row counts in each draw, of shape (draws, n). The weights of a draw sum to 1."""
    draws = int(np.clip(MOST_WEIGHTS // n, FEWEST_DRAWS, DRAWS))
    codes = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    size = codes.max() + 1
    counts = random.multinomial(size, np.full(size, 1.0 / size), size=draws)[:, codes].astype(np.float64)
    return counts / counts.sum(axis=1, keepdims=True)


def _of_mean(
    loss: np.ndarray, weights: np.ndarray, clusters: np.ndarray | None, random: np.random.RandomState
) -> list[float]:
    mean = float(loss.mean())
    error = float(loss.std() / np.sqrt(len(loss)))
    if clusters is not None or mean <= 0 or error == 0:
        return _percentiles(weights @ loss)
    means = weights @ loss
    errors = np.sqrt(np.maximum(weights @ loss**2 - means**2, 1e-300) / len(loss))
    ratios = (np.log(means) - np.log(mean)) / (errors / means)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    beyond = float(np.quantile(draws_of_mean(loss, random), (1 + LEVEL) / 2))
    return [float(mean * np.exp(-high * error / mean)), max(float(mean * np.exp(-low * error / mean)), beyond)]


def _wilson(right: np.ndarray) -> list[float]:
    n, share, z = len(right), float(right.mean()), float(norm.ppf((1 + LEVEL) / 2))
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return [float(max(0.0, center - half)), float(min(1.0, center + half))]


def _percentiles(values: np.ndarray) -> list[float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return [float(low), float(high)]

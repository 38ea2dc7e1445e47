"""How far a score may be off, because the rows left out are few: bootstrap intervals, and paired ones of two models."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.app.projects.baselines import Answers
from mercer.app.projects.table_split import SplitPlan

LEVEL = 0.9
# Draws of the rows, fewer where rows are many: the weights of all draws are held at once.
DRAWS, FEWEST_DRAWS, MOST_WEIGHTS = 1000, 50, 5_000_000
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
# Fewer rows, or groups of rows, give no interval.
FEWEST = 10
MAIN = {"regression": "rmse", "classification": "log_loss"}


def losses_of(task: str, y: np.ndarray, answers: Answers) -> dict[str, np.ndarray]:
    """Return the losses of each row whose means the scores are made of.

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


def score_intervals(
    task: str, y: np.ndarray, answers: Answers, random: np.random.RandomState, clusters: np.ndarray | None = None
) -> dict[str, list[float]]:
    """Return intervals that hold the score on all rows of this kind with probability 0.9, where there are rows enough.

    Means of losses have intervals by the studentized bootstrap of their logarithm, which allows for their skewness;
    accuracy has Wilson's. With clusters, whole ones are drawn and intervals are those of the percentiles.

    Parameters
    ----------
    task : {"regression", "classification"}
    y : ndarray of shape (n,)
    answers : Answers
    random : RandomState
    clusters : ndarray of int of shape (n,) or None
        Rows that belong together: groups, or stretches of time.
    """
    if _n_drawn(y, clusters) < FEWEST:
        return {}
    losses = losses_of(task, y, answers)
    weights = _weights(len(y), random, clusters)
    if task == "regression":
        found = {
            "rmse": [float(np.sqrt(end)) for end in _of_mean(losses["square"], weights, clusters)],
            "mae": _of_mean(losses["size"], weights, clusters),
        }
        return found | ({"r2": _percentiles(_r2(losses["square"], y, weights))} if np.ptp(y) > 0 else {})
    accuracy = _wilson(losses["right"]) if clusters is None else _percentiles(weights @ losses["right"])
    return {"log_loss": _of_mean(losses["log"], weights, clusters), "accuracy": accuracy}


def compare_with_best(
    task: str,
    y: np.ndarray,
    answers: Answers,
    baselines: list[Answers],
    random: np.random.RandomState,
    clusters: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return how much lower the RMSE or the log loss is than that of the best baseline, with a paired interval.

    The same rows are drawn for both, so that what makes rows hard for all does not count. The best is chosen on these
    rows too, which speaks for the baseline. Empty where rows are too few.

    Parameters
    ----------
    task, y, answers, random, clusters
        As in `score_intervals`.
    baselines : list of Answers
    """
    if _n_drawn(y, clusters) < FEWEST or not baselines:
        return {}
    best = min(baselines, key=lambda other: _main(task, losses_of(task, y, other), None))
    name = MAIN[task]
    weights = _weights(len(y), random, clusters)
    own, others = losses_of(task, y, answers), losses_of(task, y, best)
    low, high = _percentiles(_main(task, others, weights) - _main(task, own, weights))
    lower_by = float(_main(task, others, None) - _main(task, own, None))
    return {"score": name, "baseline": best.name, "lower_by": lower_by, "low": low, "high": high}


def compare_with_guess(
    task: str,
    y: np.ndarray,
    answers: Answers,
    baselines: list[Answers],
    random: np.random.RandomState,
    clusters: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the same as `compare_with_best` for the best of the baselines that look at no input.

    Parameters
    ----------
    task, y, answers, baselines, random, clusters
        As in `compare_with_best`.
    """
    guesses = [other for other in baselines if other.is_guess]
    return compare_with_best(task, y, answers, guesses, random, clusters)


def clusters_of(plan: SplitPlan, rows: np.ndarray) -> np.ndarray | None:
    """Return which rows belong together as a split says: stretches of time, or groups; None if each is by itself."""
    if plan.times is not None:
        return stretches_of(plan.times[rows])
    return None if plan.groups is None else plan.groups[rows]


def stretches_of(times: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for rows of one stretch of time: about n^(2/3) stretches of equal length.

    Errors of rows that follow each other are alike: drawn one by one, they would seem to be many.

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
    """Return how much each row counts in each draw, of shape (draws, n); they sum to 1 in each."""
    draws = int(np.clip(MOST_WEIGHTS // n, FEWEST_DRAWS, DRAWS))
    codes = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    size = codes.max() + 1
    counts = random.multinomial(size, np.full(size, 1.0 / size), size=draws)[:, codes].astype(np.float64)
    return counts / counts.sum(axis=1, keepdims=True)


def _main(task: str, losses: Mapping[str, np.ndarray], weights: np.ndarray | None) -> Any:
    loss = losses["square" if task == "regression" else "log"]
    mean = loss.mean() if weights is None else weights @ loss
    return np.sqrt(mean) if task == "regression" else mean


def _of_mean(loss: np.ndarray, weights: np.ndarray, clusters: np.ndarray | None) -> list[float]:
    mean = float(loss.mean())
    error = float(loss.std() / np.sqrt(len(loss)))
    if clusters is not None or mean <= 0 or error == 0:
        return _percentiles(weights @ loss)
    means = weights @ loss
    errors = np.sqrt(np.maximum(weights @ loss**2 - means**2, 1e-300) / len(loss))
    ratios = (np.log(means) - np.log(mean)) / (errors / means)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return [float(mean * np.exp(-high * error / mean)), float(mean * np.exp(-low * error / mean))]


def _r2(square: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    spread = weights @ y**2 - (weights @ y) ** 2
    return 1.0 - weights @ square / np.maximum(spread, 1e-300)


def _wilson(right: np.ndarray) -> list[float]:
    n, share, z = len(right), float(right.mean()), float(norm.ppf((1 + LEVEL) / 2))
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return [float(max(0.0, center - half)), float(min(1.0, center + half))]


def _percentiles(values: np.ndarray) -> list[float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return [float(low), float(high)]

"""How good predictions are: what scikit-learn does not measure. Gaussian uncertainty, and methods over data sets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Return `value` as a float64 array, or say that it is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise invalid_parameter(name, value, "an array of numbers") from error


def check_gaussian(y: Any, mean: Any, std: Any, y_name: str = "y") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets y and their predictions N(mean, std^2) as float64 arrays of one shape, or say what is wrong."""
    arrays = {name: as_numbers(name, value) for name, value in ((y_name, y), ("mean", mean), ("std", std))}
    shape = arrays[y_name].shape
    for name, array in arrays.items():
        # No broadcasting: y of shape (n, 1) beside a mean of shape (n,) would silently compare all pairs.
        if array.shape != shape:
            raise invalid_parameter(name, array.shape, f"an array of the shape of {y_name}, which is {shape}")
        if array.size == 0:
            raise invalid_parameter(name, array.shape, "an array with at least one entry")
        if not np.all(np.isfinite(array)):
            first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise invalid_parameter(name, float(array[first]), "finite throughout", f"Found at {first}.")
    if arrays["std"].min() <= 0:
        raise invalid_parameter("std", float(arrays["std"].min()), "above 0 throughout")
    return arrays[y_name], arrays["mean"], arrays["std"]


def check_level(level: Any) -> float:
    """Return the probability of an interval if it lies strictly between 0 and 1, where the interval is finite."""
    number = check_number("level", level, above=0)
    if number >= 1:
        raise invalid_parameter("level", level, "a finite number above 0 and below 1")
    return number


def interval_halfwidth(level: Any) -> float:
    """Return z such that mean ± z std holds a Gaussian target with probability `level`."""
    return float(norm.ppf((1 + check_level(level)) / 2))


def negative_log_likelihood(y: Any, mean: Any, std: Any) -> float:
    """How probable are targets under Gaussian predictions? Return the mean of -log N(y | mean, std^2), lower is better.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        What a model predicts of each. The spread is that of a target, noise included.

    Examples
    --------
    >>> from mercer.metrics import negative_log_likelihood
    >>> round(negative_log_likelihood([0.0, 2.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.9189
    """
    y, mean, std = check_gaussian(y, mean, std)
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(std) + 0.5 * ((y - mean) / std) ** 2))


def coverage(y: Any, mean: Any, std: Any, level: float = 0.9) -> float:
    """How often does the central interval of probability `level` hold its target? Return the share; `level` is right.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        What a model predicts of each: the interval is mean ± z std.
    level : float, default=0.9
        Strictly between 0 and 1.

    Examples
    --------
    >>> from mercer.metrics import coverage
    >>> coverage([0.0, 1.6, 1.7, -2.0], [0.0] * 4, [1.0] * 4)
    0.5
    """
    y, mean, std = check_gaussian(y, mean, std)
    return float(np.mean(np.abs(y - mean) <= interval_halfwidth(level) * std))


def common_data_sets(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the data sets of `scores[method][data set]`; an error unless all methods have the same ones.

    A method that is left out where it would do badly would come out ahead.
    """
    if not isinstance(scores, Mapping) or not scores:
        raise invalid_parameter("scores", scores, "a dict from method to a dict from data set to scores, not empty")
    for method, of_method in scores.items():
        if not isinstance(of_method, Mapping) or not of_method:
            raise invalid_parameter(f"scores[{method!r}]", of_method, "a dict from data set to scores, not empty")
    first = next(iter(scores))
    for method, of_method in scores.items():
        if set(of_method) != set(scores[first]):
            raise invalid_parameter(
                f"scores[{method!r}]",
                sorted(map(str, of_method)),
                f"scores on the data sets of {first!r}, {sorted(map(str, scores[first]))}",
            )
    return list(scores[first])


def mean_ranks(scores: Mapping[str, Mapping[str, float]], *, lower_is_better: bool = True) -> dict[str, float]:
    """Which method is best over data sets of different scales? Return the mean rank of each, 1 for always the best.

    Parameters
    ----------
    scores : dict from method to dict from data set to float
        All methods on the same data sets. Methods with equal scores share the mean of their ranks.
    lower_is_better : bool, default=True
        Whether the lowest score gets rank 1, or the highest.

    Examples
    --------
    >>> from mercer.metrics import mean_ranks
    >>> mean_ranks({"a": {"wine": 0.6, "power": 3.8}, "b": {"wine": 0.7, "power": 3.8}})
    {'a': 1.25, 'b': 1.75}
    """
    data_sets = common_data_sets(scores)
    table = np.array(
        [
            [check_number(f"scores[{method!r}][{data_set!r}]", of_method[data_set]) for data_set in data_sets]
            for method, of_method in scores.items()
        ]
    )
    ranks = rankdata(table if lower_is_better else -table, axis=0).mean(axis=1)
    return dict(zip(scores, ranks.tolist(), strict=True))

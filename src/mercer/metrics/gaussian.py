"""Scores of predictions of a mean and a standard deviation: likelihood and coverage."""

from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter
from mercer.metrics.arrays import as_numbers


def check_gaussian(y: Any, mean: Any, std: Any, y_name: str = "y") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets y and their predictions N(mean, std^2) as float64 arrays of the same shape; else raise."""
    arrays = {name: as_numbers(name, value) for name, value in ((y_name, y), ("mean", mean), ("std", std))}
    shape = arrays[y_name].shape
    for name, array in arrays.items():
        # Broadcasting is not allowed: y of shape (n, 1) and a mean of shape (n,) would silently compare all pairs.
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
    """Return the probability of an interval if it is above 0 and below 1, where intervals are finite; else raise."""
    number = check_number("level", level, above=0)
    if number >= 1:
        raise invalid_parameter("level", level, "a finite number above 0 and below 1")
    return number


def interval_halfwidth(level: Any) -> float:
    """Return z such that mean ± z std contains a Gaussian target with probability `level`."""
    return float(norm.ppf((1 + check_level(level)) / 2))


def negative_log_likelihood(y: Any, mean: Any, std: Any) -> float:
    """How probable are targets under Gaussian predictions? Return the mean of -log N(y | mean, std^2), lower is better.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        The predictions. `std` is that of a target, including noise.

    Examples
    --------
    >>> from mercer.metrics import negative_log_likelihood
    >>> round(negative_log_likelihood([0.0, 2.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.9189
    """
    y, mean, std = check_gaussian(y, mean, std)
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(std) + 0.5 * ((y - mean) / std) ** 2))


def coverage(y: Any, mean: Any, std: Any, level: float = 0.9) -> float:
    """How often does the central interval of probability `level` contain its target? Return the share.

    The best value is `level`.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        The predictions: the interval is mean ± z std.
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

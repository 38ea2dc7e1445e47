"""Rows whose target is far beyond all others are left out, so that a single wrong number does not determine a fit."""

import numpy as np

from mercer.exceptions import DataWarning, warn_user

# A single target is an outlier if it is this many times as far from the median as every other. Among 300 draws of a
# Cauchy distribution this occurs in one sample of 20, among draws of a lognormal one in none of 2000. On none of 23
# tables is the ratio as large as 2.
ALONE = 20.0
# A few targets, up to the share SHARE_OF_FEW, are outliers if they are TOGETHER times as far: the targets of a rare
# group may be far away and correct.
TOGETHER, SHARE_OF_FEW = 1000.0, 0.01
# With fewer distinct values, it is not possible to say which one is wrong.
FEWEST_VALUES = 20


def far_beyond(values: np.ndarray) -> np.ndarray:
    """Return which of the values are much farther from the median than all others.

    Equal values count once, so that a row with weight 2 and a row that occurs twice have the same effect.
    """
    distinct = np.unique(values)
    if len(distinct) < FEWEST_VALUES:
        return np.zeros(len(values), dtype=bool)
    middle = np.median(distinct)
    distances = np.sort(np.abs(distinct - middle))[::-1]
    for count in range(max(1, int(SHARE_OF_FEW * len(distinct))), 0, -1):
        farthest = distances[count]  # the largest distance of the values that stay
        if farthest > 0 and distances[count - 1] > (ALONE if count == 1 else TOGETHER) * farthest:
            return np.abs(values - middle) > farthest
    return np.zeros(len(values), dtype=bool)


def limits_of(targets: np.ndarray) -> np.ndarray:
    """Return the median of each of c targets, and the largest allowed distance from it, of shape (2, c).

    This is the rule of `far_beyond` for further rows: a target is an outlier if it is more than `ALONE` times as far
    from the median as all targets here that are not outliers themselves.
    """
    limits = np.full((2, targets.shape[1]), np.inf)
    for c, values in enumerate(targets.T):
        distinct = np.unique(values)
        middle = np.median(distinct)
        farthest = np.abs(values[~far_beyond(values)] - middle).max()
        is_known = len(distinct) >= FEWEST_VALUES and farthest > 0
        limits[:, c] = middle, ALONE * farthest if is_known else np.inf
    return limits


def without_outliers(targets: np.ndarray, weights: np.ndarray, as_given: np.ndarray | None = None) -> np.ndarray:
    """Set the weights of rows whose target is far beyond all others to 0, and warn with the targets and their rows.

    A fit minimizes squares, and a single wrong number may contribute nearly all of their sum. It would determine the
    mean, the length scales, the noise, and also the errors of left-out rows by which these are judged.

    Parameters
    ----------
    targets : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
        The weights; rows with weight 0 are ignored.
    as_given : ndarray of shape (n, c), optional
        The targets before they were warped, for the warning.

    Returns
    -------
    ndarray of shape (n,)
        The weights.
    """
    used = np.flatnonzero(weights > 0)
    beyond = np.zeros(targets.shape, dtype=bool)
    for c in range(targets.shape[1]):
        beyond[used, c] = far_beyond(targets[used, c])
    if not beyond.any():
        return weights
    named = targets if as_given is None else as_given
    places = np.argwhere(beyond)
    shown = ", ".join(f"{named[row, c]:.4g} in row {row}" for row, c in places[:5])
    warn_user(
        f"y has {shown}{' and others' if len(places) > 5 else ''} (counted from 0), at least {ALONE:g} times as far "
        "from the middle as every other target: left out of the fit. Correct the number; if it is right, predict the "
        "logarithm of y.",
        DataWarning,
    )
    return np.where(beyond.any(axis=1), 0.0, weights)

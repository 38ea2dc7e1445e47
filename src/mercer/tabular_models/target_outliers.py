"""One wrong number among the targets must not decide: a row whose target is far beyond all others is left out."""

import numpy as np

from mercer.exceptions import DataWarning, warn_user

# A single target this many times as far from the middle as every other is no part of their distribution: among 300
# draws of a Cauchy it happens in one sample of 20, of a lognormal in none of 2000, and on none of 23 tables is it 2.
ALONE = 20.0
# A few of them, up to this share, must be so many times as far: a rare group may be far away and right.
TOGETHER, SHARE_OF_FEW = 1000.0, 0.01
# Of fewer different values nobody can say which is the wrong one.
FEWEST_VALUES = 20


def far_beyond(values: np.ndarray) -> np.ndarray:
    """Return which of the values are far beyond all others, as seen from their middle.

    Equal values count once, so that weights and copies of rows say the same.
    """
    distinct = np.unique(values)
    if len(distinct) < FEWEST_VALUES:
        return np.zeros(len(values), dtype=bool)
    middle = np.median(distinct)
    distances = np.sort(np.abs(distinct - middle))[::-1]
    for count in range(max(1, int(SHARE_OF_FEW * len(distinct))), 0, -1):
        farthest = distances[count]  # of those that stay
        if farthest > 0 and distances[count - 1] > (ALONE if count == 1 else TOGETHER) * farthest:
            return np.abs(values - middle) > farthest
    return np.zeros(len(values), dtype=bool)


def limits_of(targets: np.ndarray) -> np.ndarray:
    """Return the middle of each column of targets, and how far from it a target of another row may be, of shape (2, c).

    The rule of `far_beyond` for rows that are not among these: a target that is `ALONE` times as far from the middle as
    every one here that is no outlier itself.
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
    """Return the weights with 0 for rows whose target is far beyond all others, and warn with their numbers.

    Everything that a fit chooses minimizes squares, of which one wrong number would have nearly all: the mean, the
    length scales, the noise, and the errors of left-out rows that are to judge them.

    Parameters
    ----------
    targets : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
        Rows of weight 0 have no part in it.
    as_given : ndarray of shape (n, c), optional
        The targets before they were warped, for the warning.
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

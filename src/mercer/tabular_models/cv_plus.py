"""Intervals that hold whatever the distribution of the rows: CV+ of Barber, Candès, Ramdas and Tibshirani (2021)."""

import math
from typing import NamedTuple

import numpy as np

from mercer.blocks import WORKING_MEMORY, rows_per_block


class FoldScores(NamedTuple):
    """How far each training row was from what was predicted for it by a model that had not seen its fold.

    Attributes
    ----------
    fold : ndarray of shape (m,)
        The fold of each row.
    score : ndarray of shape (m, c)
        |y - mean| / deviation, both predicted by the model of the other folds.
    """

    fold: np.ndarray
    score: np.ndarray


def balanced_folds(n: int, n_folds: int, random: np.random.RandomState) -> np.ndarray:
    """Return a fold for each of n rows, drawn at random, all of the same size up to one row."""
    fold = np.empty(n, dtype=np.int64)
    fold[random.permutation(n)] = np.arange(n) % min(n_folds, n)
    return fold


def cv_plus_interval(
    means: np.ndarray,
    deviations: np.ndarray,
    scores: FoldScores,
    coverage: float,
    working_memory: float = WORKING_MEMORY,
) -> np.ndarray:
    """Return intervals that hold new targets with probability at least 1 - 2 alpha, alpha = 1 - coverage.

    Every training row i proposes the interval of the model k that had not seen it, mean_k(x) -+ score_i deviation_k(x).
    The lower end is the floor(alpha (m + 1))-th smallest of the lower ends, the upper one the
    ceil((1 - alpha) (m + 1))-th smallest of the upper ends; without end where there are too few rows for that. With
    deviations of 1 this is the paper's CV+ (its equation 11). Deviations that depend on x are those of nested sets
    (Gupta, Kuchibhotla and Ramdas, 2022), for which the same holds: intervals are wide where errors are large. In
    practice it is rather more than 1 - alpha where rows are few (.93 for .90 on 200 made tables of 60 rows in five
    folds, with Student-t noise of 2 degrees of freedom); 1 - 2 alpha is what no distribution of exchangeable rows can
    break, but for a term of the order of sqrt(2 / m).

    Parameters
    ----------
    means, deviations : ndarray of shape (K, n, c)
        What the model without fold k predicts at n new rows.
    scores : FoldScores
        Of m training rows.
    coverage : float
    working_memory : float
        MiB for the ends of one block of rows.

    Returns
    -------
    ndarray of shape (n, c, 2)

    Notes
    -----
    O(n m c).
    """
    (_, n, outputs), m = means.shape, len(scores.fold)
    alpha = 1.0 - coverage
    # Rounding must not move a rank: .1 * 10 is 1.
    low, high = math.floor(alpha * (m + 1) + 1e-9), math.ceil((1.0 - alpha) * (m + 1) - 1e-9)
    result = np.empty((n, outputs, 2))
    rows = rows_per_block(n, 16 * m, working_memory)
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        for j in range(outputs):
            center = means[:, block, j].T[:, scores.fold]
            half = deviations[:, block, j].T[:, scores.fold] * scores.score[:, j]
            result[block, j, 0] = np.partition(center - half, low - 1)[:, low - 1] if low >= 1 else -np.inf
            result[block, j, 1] = np.partition(center + half, high - 1)[:, high - 1] if high <= m else np.inf
    return result

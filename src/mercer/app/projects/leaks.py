"""Columns that give the target away: what is known only afterwards, or says the answer in other words."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mercer.app.projects.row_order import times_of
from mercer.tables.frames import optional

FEWEST_ROWS = 30
# A column alone predicts so much of the target of rows that had no part in it: no ordinary input does.
GIVES_NUMBERS_AWAY, GIVES_CLASSES_AWAY = 0.98, 0.985
# Differences of so many columns of dates are looked at.
MOST_DATES = 6


def find_leaks(frame: Any, kinds: Mapping[str, str], y: np.ndarray) -> dict[str, str]:
    """Return the columns that predict the target by themselves almost without error, with the reason.

    Each row is predicted from the two rows beside it in the order of the column, or from the other rows with the same
    value: O(n log n) a column. Where there is one input, it may well tell all: nothing is said.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    y : ndarray of shape (n,) or (n, n_classes)
        The target as numbers, or a column a class.
    """
    Y = (y[:, None] if y.ndim == 1 else y).astype(np.float64)
    if len(Y) < FEWEST_ROWS or len(kinds) < 2 or not np.ptp(Y, axis=0).any():
        return {}
    found = {}
    for name, kind in kinds.items():
        share, bar = _explained(frame[name], kind, Y), GIVES_NUMBERS_AWAY if Y.shape[1] == 1 else GIVES_CLASSES_AWAY
        if share >= bar:
            found[name] = (
                f"by itself it predicts {share:.1%} of it. Is it known before? --ignore {name!r} leaves it out."
            )
    dates = [name for name, kind in kinds.items() if kind == "date" and name not in found][:MOST_DATES]
    for first, second in combinations(dates, 2):
        days = (times_of(frame[second]) - times_of(frame[first])) / 86_400e6
        if _explained_by_order(days, Y) >= (GIVES_NUMBERS_AWAY if Y.shape[1] == 1 else GIVES_CLASSES_AWAY):
            found[second] = (
                f"the days from {first!r} to it predict it. Is it known before? --ignore {second!r} leaves it out."
            )
    return found


def _explained(column: Any, kind: str, Y: np.ndarray) -> float:
    """Return how much of the target one column predicts: R^2, or the mean recall of the classes."""
    codes, _ = optional("pandas", "a table").factorize(column, use_na_sentinel=False)
    known = column.notna().to_numpy()
    # Whether it is missing may say all: a day of cancellation is known of those who have canceled.
    shares = [_explained_by_value(np.asarray(codes), Y), _explained_by_value(known.astype(int), Y)]
    if kind in ("number", "date") and column.dtype.kind in "iufM" and known.mean() >= 0.5:
        shares.append(_explained_by_order(times_of(column), Y))
    return max(shares)


def _explained_by_value(codes: np.ndarray, Y: np.ndarray) -> float:
    """Predict a row from the others with the same value; those that are alone with it by the mean of all."""
    if codes.min() == codes.max():
        return 0.0
    sizes = np.bincount(codes).astype(np.float64)
    sums = np.stack([np.bincount(codes, weights=y) for y in Y.T], axis=1)
    others = np.maximum(sizes[codes] - 1.0, 1.0)[:, None]
    predicted = np.where(sizes[codes][:, None] > 1, (sums[codes] - Y) / others, Y.mean(axis=0))
    return _share(predicted, Y)


def _explained_by_order(values: np.ndarray, Y: np.ndarray) -> float:
    """Predict a row from those beside it in the order of the values; equal ones in no order."""
    shuffled = np.random.default_rng(0).permutation(len(values))  # the file may be sorted by the target
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    ranked = Y[order]
    predicted = np.empty_like(ranked)
    predicted[1:-1] = (ranked[:-2] + ranked[2:]) / 2.0
    predicted[0], predicted[-1] = ranked[1], ranked[-2]
    return _share(predicted, ranked)


def _share(predicted: np.ndarray, Y: np.ndarray) -> float:
    if Y.shape[1] == 1:
        spread = ((Y - Y.mean(axis=0)) ** 2).sum()
        return float(1.0 - ((Y - predicted) ** 2).sum() / spread) if spread > 0 else 0.0
    right = predicted.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.mean([right[Y[:, k] > 0].mean() for k in range(Y.shape[1]) if (Y[:, k] > 0).sum() > 1]))

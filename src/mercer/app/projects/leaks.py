"""Find columns that give the target away: they are known only afterwards, or are the target in another form."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mercer.app.projects.row_order import times_of
from mercer.tables.frames import optional

FEWEST_ROWS = 30
# A column is suspected if it alone explains this much of the target (R^2 of numbers, mean recall of classes), which no
# ordinary input does.
GIVES_NUMBERS_AWAY, GIVES_CLASSES_AWAY = 0.98, 0.985
# The differences of the first six columns of dates are tested.
MOST_DATES = 6


def find_leaks(frame: Any, kinds: Mapping[str, str], y: np.ndarray) -> dict[str, str]:
    """Return the columns that predict the target almost without error by themselves, with the reasons.

    Each row is predicted from the two rows beside it in the order of the column, and from the other rows with the same
    value, in O(n log n) for each column. A table with a single input is not tested, since that may well explain all.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    y : ndarray of shape (n,) or (n, n_classes)
        The target as numbers, or as one column of 0 and 1 for each class.
    """
    Y = (y[:, None] if y.ndim == 1 else y).astype(np.float64)
    if len(Y) < FEWEST_ROWS or len(kinds) < 2 or not np.ptp(Y, axis=0).any():
        return {}
    found = {}
    threshold = GIVES_NUMBERS_AWAY if Y.shape[1] == 1 else GIVES_CLASSES_AWAY
    for name, kind in kinds.items():
        share = _explained(frame[name], kind, Y)
        if share >= threshold:
            found[name] = (
                f"by itself it predicts {share:.1%} of it. Will it be known when you predict? If not, leave it out "
                f"with --ignore {name!r}."
            )
    dates = [name for name, kind in kinds.items() if kind == "date" and name not in found][:MOST_DATES]
    for first, second in combinations(dates, 2):
        days = (times_of(frame[second]) - times_of(frame[first])) / 86_400e6
        if _explained_by_order(days, Y) >= threshold:
            found[second] = (
                f"the days from {first!r} to it predict it. Will it be known when you predict? If not, leave it out "
                f"with --ignore {second!r}."
            )
    return found


def _explained(column: Any, kind: str, Y: np.ndarray) -> float:
    """Return how much of the target one column explains: R^2 for numbers, or the mean recall of the classes."""
    codes, _ = optional("pandas", "a table").factorize(column, use_na_sentinel=False)
    known = column.notna().to_numpy()
    # Whether a value is missing may explain all: a date of cancellation is known only for those who have canceled.
    shares = [_explained_by_value(np.asarray(codes), Y), _explained_by_value(known.astype(int), Y)]
    if kind in ("number", "date") and column.dtype.kind in "iufM" and known.mean() >= 0.5:
        shares.append(_explained_by_order(times_of(column), Y))
    return max(shares)


def _explained_by_value(codes: np.ndarray, Y: np.ndarray) -> float:
    """Predict each row by the mean of the other rows with the same value, or by the mean of all if there are none."""
    if codes.min() == codes.max():
        return 0.0
    sizes = np.bincount(codes).astype(np.float64)
    sums = np.stack([np.bincount(codes, weights=y) for y in Y.T], axis=1)
    others = np.maximum(sizes[codes] - 1.0, 1.0)[:, None]
    predicted = np.where(sizes[codes][:, None] > 1, (sums[codes] - Y) / others, Y.mean(axis=0))
    return _share(predicted, Y)


def _explained_by_order(values: np.ndarray, Y: np.ndarray) -> float:
    """Predict each row from the two beside it in the order of the values. Equal values are put in random order."""
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

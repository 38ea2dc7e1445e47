"""The splits of the UCI sets, with a largest number of rows, and the standardization that some contestants need."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.datasets import uci_regression


class Split(NamedTuple):
    """The training rows and the test rows of a split."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Prediction(NamedTuple):
    """The predicted means, the standard deviations of targets including their noise (None: no density), and notes.

    `importances` is the diagonal of a learned metric as text.
    """

    mean: np.ndarray
    std: np.ndarray | None = None
    note: str = ""
    importances: str = ""


Predict = Callable[[np.ndarray], Prediction]
Fit = Callable[[np.ndarray, np.ndarray, int], Predict]  # (X, y, seed)


def load_split(name: str, seed: int, *, duplicates: bool = True, most_rows: int = 3000) -> Split:
    """Return the fixed split number `seed` of a UCI set, with at most `most_rows` training rows.

    Without `duplicates`, rows that repeat an earlier row are removed.
    """
    X, y, test_indices = uci_regression(name)
    if seed >= len(test_indices):
        raise ValueError(f"{name} has {len(test_indices)} fixed splits, got number {seed}")
    train, test = sides(len(X), test_indices[seed], None if duplicates else first_copies(X, y))
    train = capped(train, most_rows, seed)
    return Split(X[train], y[train], X[test], y[test])


def first_copies(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the indices, in order, of the rows that equal no earlier row in all inputs and the target."""
    return np.sort(np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1])


def sides(n: int, test: np.ndarray, kept: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of training and test rows, as in the fixed split, of the `kept` rows only."""
    kept = np.arange(n) if kept is None else kept
    return kept[~np.isin(kept, test)], test[np.isin(test, kept)]


def capped(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return at most `most` rows, drawn by the number of the split, so that they are the same for all contestants."""
    return rows if len(rows) <= most else np.random.default_rng(seed).permutation(rows)[:most]


def standardized(fit: Fit) -> Fit:
    """Return `fit` for standardized columns and targets, as in the paper; it predicts in the units of y."""

    def fit_scaled(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
        center, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        level, unit = y.mean(), y.std()
        predict = fit((X - center) / scale, (y - level) / unit, seed)

        def predict_scaled(X_test: np.ndarray) -> Prediction:
            mean, std, note, _ = predict((X_test - center) / scale)
            return Prediction(level + unit * mean, None if std is None else unit * std, note)

        return predict_scaled

    return fit_scaled

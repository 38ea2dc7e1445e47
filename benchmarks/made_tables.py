"""Generated tables of known functions, so that errors can be measured against the truth without noise."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Rows of a made table.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        The truth with noise.
    truth : ndarray of shape (n,)
    """

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


def friedman(X: np.ndarray) -> np.ndarray:
    """Return Friedman's function of the first five columns; its deviation on uniform columns is about 4.9."""
    product, square = np.sin(np.pi * X[:, 0] * X[:, 1]), (X[:, 2] - 0.5) ** 2
    return 10.0 * product + 20.0 * square + 10.0 * X[:, 3] + 5.0 * X[:, 4]


def friedman_and_a_wave(X: np.ndarray) -> np.ndarray:
    """Return Friedman's function plus an interaction of the next two columns, a wave in one of them."""
    return friedman(X) + np.sin(8.0 * X[:, 5]) * X[:, 6]


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "friedman": friedman,
    "friedman_and_a_wave": friedman_and_a_wave,
}


def uniform_rows(function: str, n: int, d: int, seed: int, *, fresh: bool = False, dtype: str = "float64") -> Rows:
    """Return uniform columns, a function of them, and the function with noise of variance 1.

    Parameters
    ----------
    function : str
        One of FUNCTIONS.
    n, d : int
    seed : int
        Tables of different seeds are independent.
    fresh : bool, default=False
        Whether to draw rows to predict, which differ from the training rows with the same seed.
    dtype : {"float64", "float32"}, default="float64"
        The precision in which everything is drawn, so that a large table never exists in double precision.
    """
    random = np.random.default_rng([seed, int(fresh)])
    X = random.random((n, d), dtype=np.dtype(dtype))
    truth = FUNCTIONS[function](X)
    return Rows(X, truth + random.standard_normal(n, dtype=X.dtype), truth)


# Each toy has a different best metric: one scale for each column, one direction, or a few columns with their products.
TOYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sin(3 x0) + x1^2": lambda X: np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2,
    "tanh(2 mean)": lambda X: np.tanh(2.0 * X[:, :5].sum(axis=1) / np.sqrt(5.0)),
    "x0 x1 + |x2|": lambda X: X[:, 0] * X[:, 1] + np.abs(X[:, 2]),
}
TOY_ROWS, TOY_COLUMNS, TOY_NOISE, TOY_TEST_ROWS = 200, 15, 0.1, 1000


def toy_rows(name: str, seed: int, n: int = TOY_ROWS) -> tuple[Rows, Rows]:
    """Return n training rows and 1000 test rows of a toy, with targets in units of the signal's deviation.

    Columns are normal, and the deviation of the noise is a tenth of that of the signal.
    """
    random = np.random.default_rng([seed, list(TOYS).index(name)])
    X = random.standard_normal((n + TOY_TEST_ROWS, TOY_COLUMNS))
    truth = TOYS[name](X)
    truth /= truth.std()
    y = truth + TOY_NOISE * random.standard_normal(len(X))
    train, test = slice(n), slice(n, None)
    return Rows(X[train], y[train], truth[train]), Rows(X[test], y[test], truth[test])


def rmse(prediction: np.ndarray, truth: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(prediction, dtype=np.float64).ravel() - truth) ** 2)))

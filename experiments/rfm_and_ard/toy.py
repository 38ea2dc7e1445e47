"""The toy of section 3.3, y = (x_1 + ... + x_10)^2 with d independent columns, and a wave along the same direction."""

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .contestants import fitted

ACTIVE = 10
TEST_ROWS = 1000


def square(s: np.ndarray) -> np.ndarray:
    """The paper's function, a quadratic, which a Gaussian kernel with one length for each column can also fit."""
    return s**2


def wave(s: np.ndarray) -> np.ndarray:
    """A function that is no polynomial, with about two periods over the range of the rows (s / √10 is normal)."""
    return np.sin(2 * s / np.sqrt(ACTIVE))


FUNCTIONS = {"square": square, "wave": wave}


def toy_rows(function: str, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of d standard normal columns, and the function of the sum of the first ten, without noise."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, FUNCTIONS[function](X[:, :ACTIVE].sum(axis=1))


def block_correlation(M: np.ndarray) -> float:
    """Return the correlation of the entries of M with those of the truth, whose gradients have a single direction."""
    direction = np.arange(len(M)) < ACTIVE
    return float(np.corrcoef(M.ravel(), np.outer(direction, direction).ravel())[0, 1])


def run_toy(settings: dict[str, Any], seed: int) -> dict[str, float | str]:
    """Return the errors on new rows, and the correlation of the learned metric with the true block.

    Errors are in units of the deviation of the targets. Targets of new rows can be far outside the range of those of
    the fit, and a few of them can dominate the RMSE. The median absolute error is therefore given as well.
    """
    function, n, d = settings["function"], settings["rows"], settings["columns"]
    X, y = toy_rows(function, n, d, seed)
    X_test, y_test = toy_rows(function, TEST_ROWS, d, 1_000_000 + seed)
    with threadpool_limits(1):
        start = time.perf_counter()
        model = fitted(settings, X, y, seed)
        seconds = time.perf_counter() - start
        errors = np.abs(model.predict(X_test) - y_test) / y_test.std()
    measures = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "median absolute error": float(np.median(errors)),
        "fit seconds": seconds,
    }
    if model.metric_ is None:  # The terms of the kernel have different metrics.
        return measures
    return measures | {"correlation": block_correlation(model.metric_.matrix(d))}

"""The toy of section 3.3, y = (x_1 + ... + x_10)^2 among d independent columns, and a wave along the same direction."""

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .contestants import fitted

ACTIVE = 10
TEST_ROWS = 1000


def square(s: np.ndarray) -> np.ndarray:
    """The paper's; a quadratic, which a Gaussian kernel with one length a column fits too."""
    return s**2


def wave(s: np.ndarray) -> np.ndarray:
    """No polynomial: some two periods over the range of the rows, s / √10 being standard normal."""
    return np.sin(2 * s / np.sqrt(ACTIVE))


FUNCTIONS = {"square": square, "wave": wave}


def toy_rows(function: str, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of d standard normal columns, and the function of the sum of the first ten; no noise, as in the paper."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, FUNCTIONS[function](X[:, :ACTIVE].sum(axis=1))


def block_correlation(M: np.ndarray) -> float:
    """Correlation of the entries of M with those of the truth, whose gradients all lie along one direction."""
    direction = np.arange(len(M)) < ACTIVE
    return float(np.corrcoef(M.ravel(), np.outer(direction, direction).ravel())[0, 1])


def run_toy(settings: dict[str, Any], seed: int) -> dict[str, float | str]:
    """Errors on new rows in units of the targets' deviation, and how near the learned metric is to the true block.

    Targets of new rows can lie far outside those of the fit, so that a few of them decide the RMSE: the median absolute
    error stands beside it.
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
    if model.metric_ is None:  # a kernel whose terms have their own
        return measures
    return measures | {"correlation": block_correlation(model.metric_.matrix(d))}

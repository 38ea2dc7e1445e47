"""Run one contestant on one split of a UCI set; measure RMSE, NLL, test rows in 90 % intervals, and time."""

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mercer.metrics import coverage, negative_log_likelihood

from .contestants import contestant
from .data import Prediction, load_split
from .peers import peer

Measures = dict[str, float | str]


def run_peer(settings: dict[str, Any], seed: int) -> Measures:
    """Run a peer by its name; the version of its library is among the measures."""
    fit, version = peer(settings["contestant"])
    return {**run(fit, settings["data"], seed), "library": version}


def run_ours(settings: dict[str, Any], seed: int) -> Measures:
    """Run one of our contestants by its settings."""
    return run(contestant(settings), settings["data"], seed)


def run(fit: Any, data: dict[str, Any], seed: int) -> Measures:
    """Fit on the training rows of a split, on one thread, and score on its test rows."""
    X, y, X_test, y_test = load_split(data["name"], seed, duplicates=data["duplicates"], most_rows=data["most_rows"])
    with threadpool_limits(1):
        start = time.perf_counter()
        predict = fit(X, y, seed)
        fitted = time.perf_counter()
        prediction = predict(X_test)
        done = time.perf_counter()
    return {**scores(y_test, prediction), "fit seconds": fitted - start, "predict seconds": done - fitted}


def scores(y: np.ndarray, prediction: Prediction) -> Measures:
    """Return errors of the means and, if there is a density, its NLL and the number of targets in 90 % intervals."""
    mean, std, note, importances = prediction
    errors = np.abs(y - mean)
    measures: Measures = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "median absolute error": float(np.median(errors)),
        "rows": len(y),
    }
    if std is not None:
        measures["nll"] = negative_log_likelihood(y, mean, std)
        measures["inside 90 %"] = round(coverage(y, mean, std) * len(y))
    return measures | {name: text for name, text in (("chosen", note), ("importances", importances)) if text}

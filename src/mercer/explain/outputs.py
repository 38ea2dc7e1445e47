"""Predictions as one number for each row: a target, or the probability of a class."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.exceptions import invalid_parameter


def output_of(model: Any, output: Any = None) -> tuple[int, str]:
    """Return the position and the name of an output: a class by name or position, a target by position."""
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    if not hasattr(model, "predict"):
        raise invalid_parameter("model", model, "an estimator that predicts")
    if classes is None:
        index = 0 if output is None else output
        if not isinstance(index, int | np.integer) or index < 0:
            raise invalid_parameter("output", output, "the position of a target")
        return int(index), "prediction" if output is None else f"target {index}"
    if not hasattr(model, "predict_proba"):
        raise invalid_parameter("model", model, "a classifier with predict_proba")
    names = [str(name) for name in classes]
    if output is None:
        index = len(names) - 1 if len(names) == 2 else 0
    elif str(output) in names:
        index = names.index(str(output))
    elif isinstance(output, int | np.integer) and 0 <= output < len(names):
        index = int(output)
    else:
        raise invalid_parameter("output", output, f"one of the classes {names}, or a position")
    return index, f"probability of {names[index]}"


def answers(model: Any, X: Any, index: int) -> np.ndarray:
    """Return the predictions of one target, or the probabilities of one class, of shape (n,)."""
    method = model.predict_proba if hasattr(model, "classes_") else model.predict
    values = np.asarray(method(X), dtype=np.float64).reshape(len(X), -1)
    if index >= values.shape[1]:
        raise invalid_parameter("output", index, f"a position from 0 to {values.shape[1] - 1}")
    return values[:, index]

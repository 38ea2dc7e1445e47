"""Losses of single rows: squared error, log loss and zero-one loss, or a function of the user's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.checks import check_choice
from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers

# A function of a fitted model, rows and their targets that returns the loss of each row.
Loss = Callable[[Any, Any, np.ndarray], np.ndarray]


def squared_error(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return (y - f(x))^2 of each row, averaged over several targets."""
    predicted = np.asarray(model.predict(X), dtype=np.float64).reshape(len(y), -1)
    targets = as_numbers("y", y).reshape(len(y), -1)
    if predicted.shape != targets.shape:
        raise invalid_parameter("y", y.shape, f"of {predicted.shape[1]} targets, which the model predicts")
    return ((targets - predicted) ** 2).mean(axis=1)


def log_loss(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return minus the logarithm of the probability of each row's class; a probability of 0 counts as 2e-16."""
    probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    place = {label: k for k, label in enumerate(np.asarray(model.classes_).tolist())}
    unknown = [label for label in y.tolist() if label not in place] if y.ndim == 1 else [y.shape]
    if unknown:
        raise invalid_parameter(
            "y", unknown[0], f"one of the model's classes, {list(place)}", "Leave rows of other classes out."
        )
    of_class = probabilities[np.arange(len(y)), [place[label] for label in y.tolist()]]
    return -np.log(np.maximum(of_class, np.finfo(np.float64).eps))


def zero_one_loss(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return 1 for each row whose class is wrong, and 0 for the others."""
    wrong = np.asarray(model.predict(X)).reshape(y.shape) != y
    return wrong.reshape(len(y), -1).mean(axis=1)


LOSSES: dict[str, Loss] = {"squared_error": squared_error, "log_loss": log_loss, "zero_one_loss": zero_one_loss}


def loss_of(model: Any, loss: Any) -> Loss:
    """Return the loss of that name, or the default for a model of this kind."""
    if not hasattr(model, "predict"):
        raise invalid_parameter("model", model, "a fitted estimator with predict")
    if callable(loss):
        return loss
    check_choice("loss", loss, ("auto", *LOSSES))
    if loss == "auto":
        of_classes = "log_loss" if hasattr(model, "predict_proba") else "zero_one_loss"
        return LOSSES[of_classes if hasattr(model, "classes_") else "squared_error"]
    if loss == "log_loss" and not hasattr(model, "predict_proba"):
        raise invalid_parameter("loss", loss, "'zero_one_loss' for a model without predict_proba")
    return LOSSES[loss]


def row_losses(loss: Loss, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the loss of each row, or raise an error if a user's function does not return one for each row."""
    values = as_numbers("loss", loss(model, X, y))
    if values.shape != (len(y),):
        raise invalid_parameter("loss", values.shape, f"a function that returns one loss a row, of shape ({len(y)},)")
    if not np.isfinite(values).all():
        raise invalid_parameter("loss", float(values[~np.isfinite(values)][0]), "finite for every row")
    return values

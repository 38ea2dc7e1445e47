"""Checks of the parameters of `KernelDiscriminant`."""

from typing import Any

import numpy as np

from mercer.checks import check_bandwidth, check_choice, check_count, check_number
from mercer.discriminant.kernel_choice import LEARNED_METRICS
from mercer.exceptions import invalid_parameter
from mercer.landmarks import METHODS

REGULARIZERS = ("identity", "rkhs")


def check_parameters(model: Any, classes: np.ndarray, *, exact: bool) -> None:
    """Raise if a parameter has a value that is not allowed.

    Parameters
    ----------
    model : KernelDiscriminant
    classes : ndarray of shape (c,)
        The distinct classes.
    exact : bool
        Whether the discriminants are functions of all rows and not of landmarks.
    """
    if len(classes) < 2:
        raise ValueError(f"y has {len(classes)} class ({classes[0]!r}): a discriminant needs at least 2 classes.")
    check_choice("regularizer", model.regularizer, REGULARIZERS)
    check_choice("metric", model.metric, ("identity", *LEARNED_METRICS, "auto"))
    if model.metric != "identity" and isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise invalid_parameter("metric", model.metric, "'identity' if kernel='precomputed'")
    check_number("working_memory", model.working_memory, above=0.0)
    check_landmarks(model)
    check_ridge(model.ridge, exact=exact)
    check_bandwidth(model.bandwidth)
    if model.priors is not None:
        check_priors(model.priors, len(classes))


def check_landmarks(model: Any) -> None:
    """Raise if the number of landmarks, or the way they are drawn, is not allowed."""
    check_choice("landmarks", model.landmarks, METHODS)
    if isinstance(model.n_landmarks, str):
        check_choice("n_landmarks", model.n_landmarks, ("auto",))
    elif model.n_landmarks is not None:
        check_count("n_landmarks", model.n_landmarks)


def check_ridge(ridge: Any, *, exact: bool) -> None:
    """Raise if the ridge is neither "auto" nor a number with which a fit can be solved."""
    if isinstance(ridge, str):
        if ridge != "auto":
            raise invalid_parameter("ridge", ridge, "a finite number at least 0, or 'auto'")
        return
    check_number("ridge", ridge, at_least=0.0)
    if ridge == 0 and not exact:
        raise invalid_parameter("ridge", ridge, "above 0 with landmarks or where the bandwidth is chosen")


def check_priors(priors: Any, n_classes: int) -> None:
    """Raise if the priors are not proportional to probabilities of the classes."""
    given = np.asarray(priors, dtype=np.float64)
    if given.shape != (n_classes,) or not np.all(np.isfinite(given)) or given.min() < 0 or given.sum() <= 0:
        raise invalid_parameter("priors", priors, f"{n_classes} numbers, none negative, not all zero")

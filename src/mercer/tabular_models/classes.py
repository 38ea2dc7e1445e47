"""Classes as numbers: an indicator for each class, and the product of the weights of rows and classes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from mercer.checks import distinct_classes
from mercer.exceptions import invalid_parameter


class Labels(NamedTuple):
    """The classes of rows in the form that a kernel machine learns.

    Attributes
    ----------
    classes : ndarray of shape (c,)
        The classes of rows with a weight above 0, sorted.
    indicators : ndarray of shape (n, c)
        1 for the class of a row and 0 for the others.
    weights : ndarray of shape (n,)
    """

    classes: np.ndarray
    indicators: np.ndarray
    weights: np.ndarray


def class_weights(X: np.ndarray, y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Return the weights of the rows multiplied by those of their classes.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    sample_weight : array-like of shape (n,) or None
    class_weight : dict, "balanced" or None
        A class that is missing in a dictionary has weight 1.
    """
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.sum() > 0:
        raise invalid_parameter("sample_weight", sample_weight, "weights with a sum above 0")
    if class_weight is None:
        return weights
    if isinstance(class_weight, Mapping):
        if not all(isinstance(w, int | float) and 0 <= w < np.inf for w in class_weight.values()):
            raise invalid_parameter("class_weight", class_weight, "weights of 0 or more")
    elif not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise invalid_parameter("class_weight", class_weight, "None, 'balanced' or a dictionary of class and weight")
    both = weights * compute_sample_weight(class_weight, y)
    if not both.sum() > 0:
        raise invalid_parameter("class_weight", class_weight, "weights that are above 0 for a class of y")
    return both


def class_indicators(y: np.ndarray, weights: np.ndarray) -> Labels:
    """Return the classes as indicators. A class whose rows all have weight 0 is ignored.

    Parameters
    ----------
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Weights with a sum above 0.
    """
    used = weights > 0
    classes, index = distinct_classes(y[used], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has one class, {classes[0]!r}: a classifier needs two or more.")
    indicators = np.zeros((len(y), len(classes)))
    indicators[used] = np.eye(len(classes))[index]
    return Labels(classes, indicators, weights)

"""Checks of the arrays that metrics receive, each with an error that names what is wrong."""

from typing import Any

import numpy as np
from scipy import sparse

from mercer.exceptions import invalid_parameter


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Return `value` as a float64 array, or raise an error that says why that is not possible."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise invalid_parameter(name, value, "an array of numbers") from error


def check_matrix(name: str, values: Any) -> np.ndarray:
    """Return `values` as a finite float64 matrix with at least one entry; else raise."""
    array = as_numbers(name, values)
    if array.ndim != 2 or not array.size:
        raise invalid_parameter(name, array.shape, "a matrix of shape (m, h), with an entry at least")
    if not np.all(np.isfinite(array)):
        raise invalid_parameter(name, float(array[~np.isfinite(array)][0]), "finite throughout")
    return array


def check_square(name: str, values: Any) -> Any:
    """Return `values` as a finite float64 matrix of shape (n, n): an array, or a copy as a CSR array if sparse."""
    is_sparse = sparse.issparse(values)
    matrix: Any = sparse.csr_array(values, dtype=np.float64, copy=True) if is_sparse else as_numbers(name, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise invalid_parameter(name, matrix.shape, "a matrix of shape (n, n), n at least 1")
    entries = matrix.data if is_sparse else matrix
    if not np.all(np.isfinite(entries)):
        raise invalid_parameter(name, float(entries[~np.isfinite(entries)][0]), "finite throughout")
    return matrix


def check_labels(name: str, values: Any, n_samples: int | None = None) -> np.ndarray:
    """Return the number of each row's class, counted from 0; labels may have any type, but none may be missing."""
    labels = np.asarray(values)
    if labels.ndim != 1 or not labels.size:
        raise invalid_parameter(name, labels.shape, "one label for each row, of shape (n,), n at least 1")
    if n_samples is not None and len(labels) != n_samples:
        raise invalid_parameter(name, labels.shape, f"one label for each row, of shape ({n_samples},)")
    items = labels.tolist()
    missing = [item for item in items if item is None or item != item]
    if missing:
        raise invalid_parameter(name, missing[0], "without missing labels")
    # np.unique is not used because it sorts, and numbers and strings together cannot be sorted.
    numbers = {item: number for number, item in enumerate(dict.fromkeys(items))}
    return np.array([numbers[item] for item in items])

"""Tables with more rows than a search needs: settings are chosen on some rows, and sums on landmarks use all of them.

A search uses a few thousand rows, and landmarks are drawn from 20 000. Only the sums that determine the coefficients
need every row. For machines on landmarks, the table is therefore a random draw of 100 000 rows if there are more. The
rows may be in memory, in files or with workers; all three give the same result. Up to 100 000 rows from files or
workers are loaded into memory.

A model in leaves keeps all rows. Rows from files or workers are therefore always loaded into memory, the search is the
same as for rows in memory, and workers solve the leaves.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from mercer.checks import PRECISIONS, validated
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.rows import (
    Cluster,
    MappedRows,
    RowNumbers,
    cluster_of,
    drawn_with_classes,
    gather_over_rows,
    is_elsewhere,
    numbered_classes,
    validated_column,
    validated_rows,
)
from mercer.tabular_models.noise import effective_weights
from mercer.tabular_models.target_outliers import limits_of
from mercer.tabular_models.target_warp import TargetWarp, forward_of

# The largest number of rows of a table for machines on landmarks.
MOST_TABLE_ROWS = 100_000
# Number of copies of all rows in memory while leaves are learned: as given, distinct, and under each warp.
COPIES_IN_LEAVES = 8


class Summed(NamedTuple):
    """The rows that sums on landmarks use, with their centered targets (n, c) and their weights (n,)."""

    X: Any
    y: Any
    weights: Any


class SomeRows(NamedTuple):
    """The rows in memory that a table is made of, and all rows if there are more.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,) or (n, c)
    weights : ndarray of shape (n,) or None
    numbers : ndarray of shape (n,) or None
        The indices of these rows among all rows; None if these are all rows.
    everything : Summed or None
        All rows, with the targets and weights as given; classes are given as their indices.
    workers : Cluster or None
        The workers that the rows came from; None if they came from this process.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray | None = None
    everything: Summed | None = None
    workers: Cluster | None = None

    def of_numbers(self, warps: Sequence[TargetWarp] | None, center: np.ndarray, shared_noise: float) -> Summed | None:
        """Return all rows with warped, centered targets; rows with a target far beyond all others get weight 0."""
        if self.everything is None:
            return None
        X, y, weights = self.everything
        limits = limits_of(regression_targets(self.y, warps, np.zeros(1)))
        beyond = sum(gather_over_rows(count_beyond, (warps, limits), y))
        if beyond:
            warn_user(
                f"y has {beyond} targets far beyond all others, from {len(self.y)} rows that were looked at: left out "
                "of the fit. Correct the numbers; if they are right, predict the logarithm of y.",
                DataWarning,
            )
        targets = MappedRows(regression_targets, (warps, center), y)
        return Summed(X, targets, MappedRows(weights_within, (warps, limits, shared_noise), y, self._mass(weights)))

    def of_classes(self, center: np.ndarray, shared_noise: float) -> Summed | None:
        """Return all rows with the centered indicators of their classes as targets."""
        if self.everything is None:
            return None
        X, numbers, weights = self.everything
        mass = MappedRows(effective, (shared_noise,), self._mass(weights))
        return Summed(X, MappedRows(class_targets, (center,), numbers), mass)

    def _mass(self, weights: Any) -> Any:
        """Return the weights, or a weight of 1 for each of all rows if there are none."""
        return MappedRows(ones, (), RowNumbers(len(self.everything.X))) if weights is None else weights  # type: ignore[union-attr]


def some_rows(model: Any, X: Any, y: Any, sample_weight: Any, **checks: Any) -> SomeRows:
    """Return validated rows with numbers as targets: all rows, or a draw if sums on landmarks use all rows."""
    rows, column = _checked(model, X, y, **checks)
    if not _is_drawn(model, rows):
        return _brought_here(model, rows, column, sample_weight, **checks)
    weights = _weights(sample_weight, rows)
    index = np.sort(check_random_state(model.random_state).choice(len(rows), MOST_TABLE_ROWS, replace=False))
    own = None if weights is None else weights[index]
    return SomeRows(rows[index], np.asarray(column[index], np.float64), own, index, Summed(rows, column, weights))


def some_labeled_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> SomeRows:
    """Return validated rows with classes as targets; a draw contains rows of every class."""
    rows, column = _checked(model, X, y)
    if not _is_drawn(model, rows):
        return _brought_here(model, rows, column, sample_weight)
    classes, numbers, labels = numbered_classes(column)
    weights = _weights(sample_weight, rows)
    random = check_random_state(model.random_state)
    index = drawn_with_classes(numbers, len(classes), MOST_TABLE_ROWS, random)
    if model.class_weight is not None:
        by_class = _class_weights(model.class_weight, classes, numbers)
        own = (labels,) if weights is None else (labels, weights)
        weights = MappedRows(weights_of_classes, (by_class,), *own)
    some = None if weights is None else weights[index]
    return SomeRows(rows[index], classes[numbers[index]], some, index, Summed(rows, labels, weights))


def _checked(model: Any, X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
    """Return validated rows and targets, which stay where they are: in memory, in files or with workers."""
    if not is_elsewhere(X):
        return validated(model, X, y, dtype=PRECISIONS, **checks)
    rows = validated_rows(model, X)
    return rows, validated_column(y, len(rows))


def _is_drawn(model: Any, rows: Any) -> bool:
    """Return whether the table is a draw of the rows: there are many, and sums on landmarks use all of them."""
    if len(rows) <= MOST_TABLE_ROWS:
        return False
    has_landmarks = model.n_landmarks not in (None, "auto") and model._sums_over_all_rows
    if is_elsewhere(rows) and not has_landmarks:
        _check_room_for_leaves(model, rows)
    return has_landmarks


def _check_room_for_leaves(model: Any, rows: Any) -> None:
    """Raise if rows in files or with workers would not be learned in leaves, or would not fit into memory."""
    remedy = "Or learn from some rows in memory: X[numbers] of `open_rows` is an array. predict() accepts all rows."
    if model.n_landmarks is None or not isinstance(model.metric, str):
        name = "n_landmarks" if model.n_landmarks is None else "metric"
        allowed = "'auto' or a number" if model.n_landmarks is None else "a name"
        raise invalid_parameter(
            name,
            getattr(model, name),
            f"{allowed} for more than {MOST_TABLE_ROWS} rows in files or with Dask, which one machine cannot hold",
            remedy,
        )
    bytes_a_row, memory = COPIES_IN_LEAVES * 8 * rows.shape[1], memory_of_this_machine()
    if len(rows) * bytes_a_row > memory:
        raise invalid_parameter(
            "X",
            rows.shape,
            f"of at most {memory // bytes_a_row:.0f} rows for a model in leaves, which keeps all of them: a fit takes "
            f"some {bytes_a_row} bytes a row, and this machine has {memory / 2**30:.0f} GiB",
            f"A number for n_landmarks has no such bound. {remedy}" if model._sums_over_all_rows else remedy,
        )


def memory_of_this_machine() -> float:
    """Return the bytes of memory of this machine; infinity if the system does not tell."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):
        return float("inf")
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _brought_here(model: Any, rows: Any, column: Any, sample_weight: Any, **checks: Any) -> SomeRows:
    """Return all rows, loaded into memory if they are in files or with workers."""
    if not is_elsewhere(rows):
        return SomeRows(rows, column, sample_weight)
    X, y = validated(model, rows[:], np.asarray(column[:]), dtype=PRECISIONS, **checks)
    validated_rows(model, rows)  # sets the names of the columns, which the array does not have
    weights = None if sample_weight is None else np.asarray(validated_column(sample_weight, len(X))[:])
    return SomeRows(X, y, weights, workers=cluster_of([rows]))


def _weights(sample_weight: Any, rows: Any) -> Any:
    """Return the validated weights of the rows, or None."""
    if sample_weight is None:
        return None
    if is_elsewhere(sample_weight):
        return validated_column(sample_weight, len(rows))
    return _check_sample_weight(sample_weight, np.empty((len(rows), 0)), dtype=np.float64, ensure_non_negative=True)


def _class_weights(class_weight: Any, classes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the weight of each class, of shape (c,); if "balanced", from the numbers of rows of all classes."""
    if isinstance(class_weight, dict):
        return np.array([float(class_weight.get(each, 1.0)) for each in classes.tolist()])
    return len(numbers) / (len(classes) * np.bincount(numbers, minlength=len(classes)))


# ---- functions of blocks of rows, which are sent to workers ----------------------------------------------------


def regression_targets(y: np.ndarray, warps: Sequence[TargetWarp] | None, center: np.ndarray) -> np.ndarray:
    """Return the targets as numbers of shape (n, c), warped and centered."""
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1) if len(y) else _no_targets(y)
    return (targets if warps is None else forward_of(warps, targets)) - center


def _no_targets(y: np.ndarray) -> np.ndarray:
    return np.empty((0, 1 if np.ndim(y) == 1 else y.shape[1]))


def class_targets(numbers: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Return the centered indicators of the classes, of shape (n, c)."""
    return np.eye(len(center))[np.asarray(numbers)] - center


def is_beyond(y: np.ndarray, warps: Sequence[TargetWarp] | None, limits: np.ndarray) -> np.ndarray:
    """Return which rows have a target beyond the limits, a median and the allowed distance from it, of shape (2, c)."""
    return (np.abs(regression_targets(y, warps, limits[0])) > limits[1]).any(axis=1)


def count_beyond(y: np.ndarray, warps: Sequence[TargetWarp] | None, limits: np.ndarray) -> int:
    """Return the number of rows with a target beyond the limits."""
    return int(is_beyond(y, warps, limits).sum())


def weights_within(
    y: np.ndarray, weights: np.ndarray, warps: Sequence[TargetWarp] | None, limits: np.ndarray, shared_noise: float
) -> np.ndarray:
    """Return the weights of the rows in sums, with 0 for targets beyond the limits."""
    return np.where(is_beyond(y, warps, limits), 0.0, effective(weights, shared_noise))


def effective(weights: np.ndarray, shared_noise: float) -> np.ndarray:
    """Return the effective weights of the rows (`noise.effective_weights`) as an array."""
    return np.asarray(effective_weights(np.asarray(weights, dtype=np.float64), shared_noise))  # type: ignore[arg-type]


def weights_of_classes(numbers: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return the weight of the class of each row, multiplied by the weight of the row if there is one."""
    *own, by_class = others
    return by_class[np.asarray(numbers)] * (own[0] if own else 1.0)


def ones(numbers: np.ndarray) -> np.ndarray:
    """Return a weight of 1 for each row."""
    return np.ones(len(numbers))

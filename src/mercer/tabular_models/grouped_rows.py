"""Identical rows collapsed into one, so that a copy counts as a weight and nothing else."""

from typing import NamedTuple

import numpy as np


class GroupedRows(NamedTuple):
    """The distinct rows of a table, and what each stands for.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The distinct rows, in an order that depends on their numbers alone: what is fitted to them does not depend on
        the order of the table, nor on whether a row came twice or with a weight of 2, but for the rounding of means.
    y : ndarray of shape (n,) or (n, c)
        The weighted mean of the targets of each.
    weights : ndarray of shape (n,)
        The sum of the sample weights of each.
    group : ndarray of shape (n_original,)
        Which of the distinct rows each original row is, -1 where its weight is 0.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    group: np.ndarray

    @property
    def are_plain(self) -> bool:
        """Whether all weights are 1, so that they need not be carried along."""
        return bool((self.weights == 1.0).all())


def collapse(X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> GroupedRows:
    """Collapse identical rows: the weight of a group is the sum of its weights, its target their weighted mean.

    A ridge fit with weights on the groups equals the fit on all rows: sum_i w_i (y_i - f)^2 differs from
    w (mean - f)^2 by what does not depend on f. What changes is what leaving one out means: a group is left out as a
    whole, so that a copy of a row in the table no longer gives its answer away, and the kernel matrix has no equal
    rows. Rows of weight 0 are dropped.

    O(n d log n).
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = weights > 0
    rows, w, targets = X[used], weights[used], y[used]
    # -0.0 and 0.0 are the same number with other bytes; rows are compared by their bytes, which is quick.
    keys = np.ascontiguousarray(rows + 0.0)
    packed = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    group = np.full(len(X), -1)
    group[used] = inverse
    if len(first) == len(rows):
        return GroupedRows(rows[first], targets[first], w[first], group)
    total = np.bincount(inverse, weights=w)
    columns = targets.reshape(len(targets), -1)
    means = np.stack([np.bincount(inverse, weights=w * column) / total for column in columns.T], axis=1)
    return GroupedRows(rows[first], means.reshape(len(first), *targets.shape[1:]), total, group)

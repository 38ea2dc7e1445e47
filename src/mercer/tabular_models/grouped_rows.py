"""Identical rows are collapsed into one, so that a copy of a row only adds to its weight."""

from typing import NamedTuple

import numpy as np


class GroupedRows(NamedTuple):
    """The distinct rows of a table, with the targets and weights of their groups of identical rows.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The distinct rows, in an order that only depends on their values. Up to the rounding of means, a model fitted to
        them depends neither on the order of the table, nor on whether a row occurs twice or once with weight 2.
    y : ndarray of shape (n,) or (n, c)
        The weighted mean of the targets of each group.
    weights : ndarray of shape (n,)
        The sum of the sample weights of each group.
    group : ndarray of shape (n_original,)
        The index of the distinct row that equals each original row, or -1 if the weight of the original row is 0.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    group: np.ndarray

    @property
    def are_plain(self) -> bool:
        """Whether all weights are 1, so that they are not needed."""
        return bool((self.weights == 1.0).all())


def collapse(X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> GroupedRows:
    """Collapse identical rows into one row, with the sum of their weights and the weighted mean of their targets.

    A weighted ridge fit on the groups equals the fit on all rows, since sum_i w_i (y_i - f)^2 differs from
    w (mean - f)^2 by a constant. Leave-one-out errors change: a group is left out as a whole, so that a row is not
    predicted from its own copies. The kernel matrix then has no equal rows. Rows with weight 0 are dropped.

    O(n d log n).
    """
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = weights > 0
    rows, w, targets = X[used], weights[used], y[used]
    # Rows are compared by their bytes, which is fast. Adding 0.0 turns -0.0 into 0.0, an equal number with other bytes.
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

"""Partitions of rows into leaves by cuts at medians along leading directions, so that each leaf has its own machine."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import Kernel
from mercer.tabular_models.column_warp import ColumnWarp

# The direction of a cut is computed from at most this many rows.
MOST_DIRECTION_ROWS = 2000


class Partition(NamedTuple):
    """A binary tree of cuts: a row goes to the left if its projection on a direction is at most a threshold.

    Attributes
    ----------
    columns : ColumnWarp
        The warp of the columns before the projection.
    directions : ndarray of shape (k, d)
        The direction of each cut.
    thresholds : ndarray of shape (k,)
        The threshold of each cut.
    children : ndarray of shape (k, 2)
        The index of the next cut on the left and on the right; -1 - leaf if there is a leaf.
    """

    columns: ColumnWarp
    directions: np.ndarray
    thresholds: np.ndarray
    children: np.ndarray

    @property
    def n_leaves(self) -> int:
        """The number of leaves, which is one if there is no cut."""
        return len(self.thresholds) + 1

    def leaves_of(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf of each row, of shape (n,)."""
        if not len(self.thresholds):
            return np.zeros(len(X), dtype=np.int32)
        Z = self.columns.transform(X.astype(np.float64, copy=False))
        leaf, todo = np.empty(len(X), dtype=np.int32), [(0, np.arange(len(X)))]
        while todo:
            cut, rows = todo.pop()
            left = Z[rows] @ self.directions[cut] <= self.thresholds[cut]
            for child, part in zip(self.children[cut], (rows[left], rows[~left]), strict=True):
                if child >= 0:
                    todo.append((int(child), part))
                else:
                    leaf[part] = -1 - child
        return leaf


def median_cuts(
    kernel: Kernel, columns: ColumnWarp, Z: Tensor, most_rows: int, random: np.random.RandomState, first: int = 0
) -> tuple[Partition, np.ndarray]:
    """Cut warped rows into leaves of at most `most_rows` rows, each cut at the median along the leading direction.

    The leading direction is that of the largest variance under the metric of the kernel, since predictions depend most
    on directions that are long under the metric. Rows that are close under the metric mostly stay together.

    Parameters
    ----------
    kernel : Kernel
        The kernel whose metric is used.
    columns : ColumnWarp
        The warp that gave Z, which is stored in the partition.
    Z : tensor of shape (n, d)
        The warped rows.
    most_rows : int
        The largest number of rows in a leaf.
    random : RandomState
        Draws the rows from which directions are computed.
    first : int, default=0
        The index of the leading direction that the first cut uses. Another index gives a partition with other borders.

    Returns
    -------
    partition : Partition
    leaves : ndarray of shape (n,)
        The leaf of each row.

    Notes
    -----
    O(n d) for each level of the tree, of which there are log2(n / most_rows).
    """
    metric = kernel.single_metric()
    directions: list[np.ndarray] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    leaves = np.empty(len(Z), dtype=np.int32)
    n_leaves = 0

    def grow(rows: np.ndarray) -> int:
        nonlocal n_leaves
        which = 0 if thresholds else first
        cut = leading_cut(metric.project, Z, rows, random, which) if len(rows) > most_rows else None
        if cut is None:
            leaves[rows] = n_leaves
            n_leaves += 1
            return -n_leaves
        direction, threshold, values = cut
        place = len(thresholds)
        directions.append(direction)
        thresholds.append(threshold)
        children.append([0, 0])
        left = values <= threshold
        children[place] = [grow(rows[left]), grow(rows[~left])]
        return place

    grow(np.arange(len(Z)))
    d = Z.shape[1]
    made = Partition(
        columns,
        np.array(directions).reshape(-1, d),
        np.array(thresholds),
        np.array(children, dtype=np.int32).reshape(-1, 2),
    )
    return made, leaves


def random_leaf(kernel: Kernel, Z: Tensor, most_rows: int, random: np.random.RandomState) -> np.ndarray:
    """Return the rows of one leaf of at most `most_rows` rows: cuts as in `median_cuts`, with a random side of each.

    O(n d) for all cuts together, since each of them halves the number of rows.
    """
    project, rows = kernel.single_metric().project, np.arange(len(Z))
    while len(rows) > most_rows:
        cut = leading_cut(project, Z, rows, random)
        if cut is None:
            return rows[:most_rows]
        left = cut[2] <= cut[1]
        rows = rows[left if random.randint(2) else ~left]
    return rows


def leading_cut(
    project: Callable[[Tensor], Tensor], Z: Tensor, rows: np.ndarray, random: np.random.RandomState, which: int = 0
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return a direction in warped columns, the threshold and the projections of the rows; None if all are equal."""
    drawn = rows if len(rows) <= MOST_DIRECTION_ROWS else random.choice(rows, MOST_DIRECTION_ROWS, replace=False)
    bent = project(Z[torch.from_numpy(drawn)])
    directions = torch.linalg.svd(bent - bent.mean(dim=0), full_matrices=False)[2]
    leading = directions[min(which, len(directions) - 1)]
    # The direction in warped columns is L u, where L is the projection of the unit vectors.
    direction = (project(torch.eye(Z.shape[1]).to(Z)) @ leading).cpu().numpy()
    values = (Z[torch.from_numpy(rows)] @ torch.from_numpy(direction).to(Z)).cpu().numpy()
    middle = np.median(values)
    if not (values > middle).any():
        middle = values[values < middle].max(initial=-np.inf)
    if not (values > middle).any() or not (values <= middle).any():
        return None
    # The threshold is halfway between two rows, so that rounding errors do not move a row to the other side later.
    threshold = 0.5 * (values[values <= middle].max() + values[values > middle].min())
    return direction, float(threshold), values

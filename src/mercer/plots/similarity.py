"""Cosines of features, sorted by cluster, which show whether clusters are orthogonal (Figure 4 of the paper on MLC)."""

import math
from typing import Any

import numpy as np
import torch

from mercer.checks import check_count
from mercer.clustering.subspace.features import unit_rows
from mercer.exceptions import invalid_parameter
from mercer.metrics import check_labels, check_matrix
from mercer.plots.affinity import AffinityDisplay
from mercer.plots.clusters import features_and_labels


class SimilarityDisplay:
    """An image of |cosine| between the features of n points, sorted by cluster, as in `AffinityDisplay`.

    Clusters in orthogonal subspaces have bright blocks, and all other entries are dark. The title gives the share of
    the mass inside the blocks. If there are more than `most_points` points, every k-th point of each cluster is taken,
    so that blocks keep their proportions and no cluster is lost, and the title says so. The time is O(m^2 d) for m
    points.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Their lengths do not matter. A row of zeros has cosines of zero.
    labels : array-like of shape (n,)
        The clusters, or the classes.
    most_points : int, default=2000
        The largest number of points that are compared. It may be exceeded by one point per cluster.
    by : str, default="cluster"
        The word for a label on the axis, such as "class".

    Attributes
    ----------
    rows : ndarray of shape (m,)
        The row numbers of the points that are compared.
    blocks : Blocks
        The order of these points, and the blocks in it.
    image : ndarray
        The image that is drawn. For more than 500 points, neighbors share a cell.
    share : float
        The share of the mass that is inside the blocks.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, features: Any, labels: Any, *, most_points: int = 2000, by: str = "cluster") -> None:
        Z = check_matrix("features", features)
        codes = check_labels("labels", labels, len(Z))
        self.n_points = len(Z)
        self.step = math.ceil(len(Z) / check_count("most_points", most_points))
        self.rows = every_kth(codes, self.step)
        Z = unit_rows(torch.from_numpy(Z[self.rows])).numpy()
        if not Z.any():
            raise invalid_parameter("features", 0.0, "different from zero somewhere")
        self._affinity = AffinityDisplay(np.abs(Z @ Z.T), np.asarray(labels)[self.rows], by=by)
        self.blocks, self.image, self.share = self._affinity.blocks, self._affinity.image, self._affinity.share

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, labels: Any = None, *, most_points: int = 2000, ax: Any = None
    ) -> "SimilarityDisplay":
        """Draw the features of samples X from a fitted clustering, sorted by its own clusters or the given `labels`."""
        by = "cluster" if labels is None else "label"
        return cls(*features_and_labels(model, X, labels), most_points=most_points, by=by).plot(ax=ax)

    def plot(self, ax: Any = None, *, title: str = "|cosine|") -> "SimilarityDisplay":
        """Draw onto `ax`, or onto a new figure. Blocks without enough room have no name."""
        note = f"every {ordinal(self.step)} of {self.n_points:,} points\n" if self.step > 1 else ""
        drawn = self._affinity.plot(ax, title=f"{note}{title}")
        self.ax_, self.figure_ = drawn.ax_, drawn.figure_
        return self


def every_kth(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the row numbers of every k-th point of each code, beginning with its first, in ascending order."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    return np.sort(order[(np.arange(len(codes)) - starts) % k == 0])


def ordinal(k: int) -> str:
    """Return a whole number as an ordinal: 2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if k % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(k % 10, "th")
    return f"{k:,}{ending}"

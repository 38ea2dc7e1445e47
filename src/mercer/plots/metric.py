"""The learned metric as a heat map (Figure 3 of rfm-and-ard)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.mahalanobis import Mahalanobis
from mercer.plots.style import DIVERGING, axes_or_new

# More names than this cannot be read on an axis.
MOST_NAMES = 40


class MetricDisplay:
    """A heat map of the metric M, scaled so that its largest absolute entry is 1.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        M.
    feature_names : sequence of str, optional
        The names of the inputs, for the axes. They are not shown for more than 40 inputs.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, matrix: np.ndarray, feature_names: Sequence[str] | None = None) -> None:
        self.matrix = matrix
        self.feature_names = feature_names

    @classmethod
    def from_metric(
        cls,
        metric: Mahalanobis,
        *,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = None,
        ax: Any = None,
    ) -> "MetricDisplay":
        """Draw a metric; the identity needs `n_features` or `feature_names`."""
        if n_features is None and feature_names is not None:
            n_features = len(feature_names)
        return cls(metric.matrix(n_features), feature_names).plot(ax=ax)

    def plot(self, ax: Any = None, *, title: str = "learned metric M") -> "MetricDisplay":
        """Draw onto `ax`, or onto a new figure."""
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 4.4))
        self.figure_ = ax.figure
        largest = np.abs(self.matrix).max() or 1.0
        image = ax.imshow(self.matrix / largest, cmap=DIVERGING, vmin=-1, vmax=1)
        self.figure_.colorbar(image, ax=ax, label="relative to the largest entry", shrink=0.85)
        d = len(self.matrix)
        if self.feature_names is not None and d <= MOST_NAMES:
            size = 9 if d <= 16 else 6
            ax.set_xticks(range(d), self.feature_names, rotation=90, fontsize=size)
            ax.set_yticks(range(d), self.feature_names, fontsize=size)
        else:
            ax.set_xlabel("input")
            ax.set_ylabel("input")
            for axis in (ax.xaxis, ax.yaxis):
                axis.get_major_locator().set_params(integer=True)
        ax.set_title(title)
        return self

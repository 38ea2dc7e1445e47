"""A map of a kernel discriminant: rows in the first components with class regions, and the variance ratios."""

from itertools import combinations
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.discriminant.gaussian_classes import log_joint, squared_class_distances
from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.plots.style import CATEGORIES, pyplot, tidy

# The number of points on a side of the grid by which regions are drawn.
GRID = 200


class DiscriminantDisplay:
    """Pairs of the first two or three components of a kernel discriminant with class regions, and variance ratios.

    In the region of a class, this class is the most probable one, given only the two components of the panel.

    Parameters
    ----------
    values : ndarray of shape (n, n_components)
        The components of the rows.
    labels : ndarray of shape (n,) or None
        The classes of the rows, for their colors.
    model : KernelDiscriminant

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each pair of components, and the last one for the ratios.
    figure_ : matplotlib Figure
    """

    def __init__(self, values: np.ndarray, labels: np.ndarray | None, model: KernelDiscriminant) -> None:
        self.values = values
        self.labels = labels
        self.model = model

    @classmethod
    def from_estimator(
        cls, model: KernelDiscriminant, X: Any, y: Any = None, *, n_components: int = 2
    ) -> "DiscriminantDisplay":
        """Draw the rows X, colored by y, in the first two or three components of a fitted model."""
        labels = None if y is None else np.asarray(y)
        return cls(np.asarray(model.transform(X)), labels, model).plot(n_components=n_components)

    def plot(self, *, n_components: int = 2) -> "DiscriminantDisplay":
        """Draw onto a new figure."""
        check_count("n_components", n_components, at_least=2, at_most=3, why="two or three can be seen")
        shown = min(n_components, self.values.shape[1])
        pairs = list(combinations(range(shown), 2)) or [(0, 0)]
        widths = [1.0] * len(pairs) + [0.6]
        self.figure_, self.axes_ = pyplot().subplots(
            1, len(pairs) + 1, figsize=(4.6 * sum(widths), 4.4), layout="constrained", width_ratios=widths
        )
        for ax, (i, j) in zip(self.axes_, pairs, strict=False):
            if i == j:
                self._draw_line(ax)
            else:
                self._draw_pair(ax, i, j)
        self._draw_ratios(self.axes_[-1])
        return self

    def _colors(self) -> list[str]:
        return [CATEGORIES[i % len(CATEGORIES)] for i in range(len(self.model.classes_))]

    def _draw_pair(self, ax: Any, i: int, j: int) -> None:
        points = self.values[:, [i, j]]
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.06 * (high - low)
        grids = [np.linspace(a - m, b + m, GRID) for a, b, m in zip(low, high, margin, strict=True)]
        plane = np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, 2)
        squares = squared_class_distances(
            plane, self.model.centroids_[:, [i, j]], self.model.covariance_[np.ix_([i, j], [i, j])]
        )
        region = log_joint(squares, self.model.priors_, self.model.temperature_).argmax(axis=1)
        colors = self._colors()
        palette = pyplot().matplotlib.colors.ListedColormap(colors)
        ax.pcolormesh(
            *grids,
            region.reshape(GRID, GRID),
            cmap=palette,
            vmin=-0.5,
            vmax=len(colors) - 0.5,
            alpha=0.16,
            shading="nearest",
            rasterized=True,
            linewidth=0,
        )
        size = float(np.clip(12000 / max(1, len(points)), 2.0, 24.0))
        for c, color in enumerate(colors):
            inside = slice(None) if self.labels is None else self.labels == self.model.classes_[c]
            shade = "0.3" if self.labels is None else color
            ax.scatter(*points[inside].T, s=size, color=shade, linewidths=0, alpha=0.8)
            if self.labels is None:
                break
        for c, center in enumerate(self.model.centroids_[:, [i, j]]):
            ax.annotate(
                str(self.model.classes_[c]),
                center,
                ha="center",
                va="center",
                fontsize=9,
                fontweight="bold",
                bbox={"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": colors[c], "linewidth": 1.5},
            )
        ax.set_xlim(grids[0][0], grids[0][-1])
        ax.set_ylim(grids[1][0], grids[1][-1])
        ax.set_xlabel(f"component {i + 1}")
        ax.set_ylabel(f"component {j + 1}")
        tidy(ax)

    def _draw_line(self, ax: Any) -> None:
        """Draw the only component as a histogram for each class."""
        for c, color in enumerate(self._colors()):
            if self.labels is None:
                ax.hist(self.values[:, 0], bins=30, color="0.5")
                break
            inside = self.labels == self.model.classes_[c]
            ax.hist(self.values[inside, 0], bins=30, color=color, alpha=0.6, label=str(self.model.classes_[c]))
        if self.labels is not None:
            ax.legend(title="class", frameon=False)
        ax.set_xlabel("component 1")
        ax.set_ylabel("rows")
        tidy(ax)

    def _draw_ratios(self, ax: Any) -> None:
        ratios = self.model.variance_ratios_
        ax.bar(range(1, len(ratios) + 1), ratios, color=CATEGORIES[0])
        ax.set_yscale("log")
        ax.axhline(1.0, color="0.4", linewidth=0.8)
        ax.set_xlabel("component")
        ax.set_title("total over within-class variance", fontsize=9)
        if len(ratios) <= 12:
            ax.set_xticks(range(1, len(ratios) + 1))
        tidy(ax)

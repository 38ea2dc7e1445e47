"""Data, kernel matrix and affinity in each iterate of a clustering (Figures 1 and 2 of precision-subspace)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.metrics import block_mass, check_matrix
from mercer.plots.affinity import Blocks, block_image, check_pairs, draw_blocks, sort_by_label
from mercer.plots.clusters import add_cluster_legend, cluster_color, legend_lines
from mercer.plots.labels import shorten
from mercer.plots.style import pyplot

# The side of a panel in inches, and a number of cells that is larger than its number of pixels.
PANEL, MOST_POINTS = 1.55, 400


class EvolutionDisplay:
    """A grid with a column for each iterate: data at the top, then the kernel matrix, then the affinity, by label.

    Both axes of a panel with data have the same scale, so that angles are correct. Each matrix has its own color scale,
    as in `AffinityDisplay`. Below it is the share of its mass inside the blocks (`mercer.metrics.block_mass`).

    Parameters
    ----------
    points : sequence of array-like of shape (n, d), or None
        The data of each iterate. Points, kernel matrices or affinities that are None are not drawn.
    kernel_matrices : sequence of array-like or scipy sparse matrix of shape (n, n), or None
    affinities : sequence of array-like or scipy sparse matrix of shape (n, n), or None
    labels : array-like of shape (n,)
        The true classes, or clusters.
    titles : sequence of str, optional
        One for each iterate; "iterate 0", "iterate 1", ... by default.
    columns : tuple of two int, default=(0, 1)
        The coordinates of the points that are drawn.

    Attributes
    ----------
    blocks : Blocks
        The order of the points, and the blocks in it.
    images : dict from str to list of ndarray
        The images of the "kernel matrix" and the "affinity" of each iterate.
    shares : dict from str to list of float
        The share of the absolute mass of each of these that is inside the blocks.
    axes_ : ndarray of matplotlib Axes
        The shape is (rows, iterates).
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        points: Sequence[Any] | None,
        kernel_matrices: Sequence[Any] | None,
        affinities: Sequence[Any] | None,
        labels: Any,
        titles: Sequence[str] | None = None,
        *,
        columns: tuple[int, int] = (0, 1),
    ) -> None:
        given = {"points": points, "kernel_matrices": kernel_matrices, "affinities": affinities, "titles": titles}
        self.n_iterates = _check_lengths({name: rows for name, rows in given.items() if rows is not None})
        self.blocks = sort_by_label(labels)
        n = len(self.blocks.order)
        self.points = None
        if points is not None:
            self.points = [_check_points(f"points[{t}]", rows, n, columns) for t, rows in enumerate(points)]
        self.images: dict[str, list[np.ndarray]] = {}
        self.shares: dict[str, list[float]] = {}
        for row, name in (("kernel matrix", "kernel_matrices"), ("affinity", "affinities")):
            if given[name] is not None:
                self._add(row, name, given[name], labels)
        self.columns = columns
        self.titles = [f"iterate {t}" for t in range(self.n_iterates)] if titles is None else list(titles)

    def _add(self, row: str, name: str, matrices: Any, labels: Any) -> None:
        n = len(self.blocks.order)
        self.images[row], self.shares[row] = [], []
        for t, values in enumerate(matrices):
            matrix = check_pairs(f"{name}[{t}]", values)
            if matrix.shape != (n, n):
                raise invalid_parameter(f"{name}[{t}]", matrix.shape, f"of shape {(n, n)}, as there are {n} labels")
            self.images[row].append(block_image(matrix, self.blocks, MOST_POINTS))
            self.shares[row].append(block_mass(matrix, labels))

    def plot(self) -> "EvolutionDisplay":
        """Draw onto a new figure."""
        rows = (self.points is not None) + len(self.images)
        width = 0.5 + PANEL * self.n_iterates
        names = [shorten(name, 16) for name in self.blocks.names]
        height = 0.5 + PANEL * rows + 0.2 * legend_lines(names, width)
        self.figure_, self.axes_ = pyplot().subplots(
            rows, self.n_iterates, figsize=(width, height), layout="compressed", squeeze=False
        )
        for ax, title in zip(self.axes_[0], self.titles, strict=True):
            ax.set_title(shorten(title, 16), fontsize=9)
        panels = iter(self.axes_)
        if self.points is not None:
            for ax, points in zip(first := next(panels), self.points, strict=True):
                _draw_points(ax, points, self.blocks)
            first[0].set_ylabel("data, columns {}, {}".format(*self.columns), fontsize=9)
        for row, images in self.images.items():
            for ax, image, share in zip(axes := next(panels), images, self.shares[row], strict=True):
                draw_blocks(ax, image, self.blocks)
                ax.set_xlabel(f"{share:.1%} in blocks", fontsize=8)
            axes[0].set_ylabel(row, fontsize=9, labelpad=8)
            _draw_colors(axes[0], self.blocks)
        add_cluster_legend(self.figure_, names)
        return self


def _draw_points(ax: Any, points: np.ndarray, blocks: Blocks) -> None:
    """Draw a panel of data with the same scale on both axes."""
    size = float(np.clip(1500 / len(points), 1.0, 10.0))
    for k, (start, stop) in enumerate(pairwise(blocks.edges)):
        ax.scatter(*points[blocks.order[start:stop]].T, color=cluster_color(k), s=size, alpha=0.75, linewidths=0)
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.55 * (high - low).max() or 1.0
    for limits, center in zip((ax.set_xlim, ax.set_ylim), (low + high) / 2, strict=True):
        limits(center - half, center + half)
    ax.set_box_aspect(1)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=6, length=2, pad=1.5)


def _draw_colors(ax: Any, blocks: Blocks) -> None:
    """Draw a line in the color of each block on its left."""
    for k, (start, stop) in enumerate(pairwise(blocks.edges)):
        ax.plot(
            [-0.04, -0.04],
            [start, stop],
            transform=ax.get_yaxis_transform(),
            clip_on=False,
            color=cluster_color(k),
            linewidth=4,
            solid_capstyle="butt",
        )


def _check_lengths(given: dict[str, Any]) -> int:
    """Return the number of iterates; raise if it is not the same in all arguments that were given."""
    lengths = {}
    for name, rows in given.items():
        if isinstance(rows, str) or not hasattr(rows, "__len__") or not len(rows):
            raise invalid_parameter(name, rows, "a sequence with one entry per iterate, not empty")
        lengths[name] = len(rows)
    if not set(lengths) - {"titles"}:
        raise invalid_parameter("points", None, "given, or kernel_matrices, or affinities")
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise invalid_parameter(name, length, f"one per iterate, as many as {first}, which has {lengths[first]}")
    return lengths[first]


def _check_points(name: str, values: Any, n: int, columns: tuple[int, int]) -> np.ndarray:
    """Return the two columns of the points that are drawn; raise if there are not n points."""
    points = check_matrix(name, values)
    if len(points) != n:
        raise invalid_parameter(name, points.shape, f"of shape ({n}, d), as there are {n} labels")
    if np.shape(columns) != (2,) or not all(0 <= column < points.shape[1] for column in columns):
        raise invalid_parameter("columns", columns, f"two columns of {name}, which has shape {points.shape}")
    return points[:, list(columns)]

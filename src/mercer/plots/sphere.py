"""Features on a sphere, with a panel for each stage of the training (Figure 1, MLC)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.checks import check_count, check_number
from mercer.exceptions import invalid_parameter
from mercer.metrics import check_matrix
from mercer.plots.affinity import sort_by_label
from mercer.plots.clusters import add_cluster_legend, cluster_color, features_and_labels, legend_lines
from mercer.plots.labels import shorten
from mercer.plots.style import pyplot

# The side of a panel in inches.
PANEL = 2.5


class SphereDisplay:
    """Unit features in three dimensions, seen from outside the sphere and colored by cluster, in several panels.

    On the sphere, a subspace of two dimensions is a great circle, and one of one dimension is two opposite points.
    Points on the far side are pale. Points that are not on the sphere, such as data with noise, are drawn at their own
    positions. All panels have the same scale.

    Parameters
    ----------
    panels : dict from str to array-like of shape (n, 3)
        Points by the title of their panel, such as "data", "random start", "self-supervised start" and "MLC".
    labels : array-like of shape (n,)
        The classes, or the clusters.
    elevation : float, default=25.0
        The angle of the viewer above the equator, in degrees. The projection is parallel.
    azimuth : float, default=-60.0
        The angle of the viewer east of the first axis, in degrees.

    Attributes
    ----------
    positions : dict from str to ndarray of shape (n, 3)
        The coordinates of the points as seen: to the right, up, and towards the viewer.
    axes_ : ndarray of matplotlib Axes
        The shape is (rows, columns). If there are fewer panels than axes, the last axes are empty.
    figure_ : matplotlib Figure
    """

    def __init__(
        self, panels: Mapping[str, Any], labels: Any, *, elevation: float = 25.0, azimuth: float = -60.0
    ) -> None:
        if not isinstance(panels, Mapping) or not panels:
            raise invalid_parameter("panels", panels, "a dict from title to points, not empty")
        self.blocks = sort_by_label(labels)
        self.view = viewing_frame(check_number("elevation", elevation), check_number("azimuth", azimuth))
        n = len(self.blocks.order)
        self.positions: dict[str, np.ndarray] = {}
        for title, values in panels.items():
            points = check_matrix(f"panels[{title!r}]", values)
            if points.shape != (n, 3):
                raise invalid_parameter(
                    f"panels[{title!r}]", points.shape, f"of shape ({n}, 3), as there are {n} labels"
                )
            self.positions[title] = points @ self.view.T

    @classmethod
    def from_estimators(cls, models: Mapping[str, Any], X: Any, labels: Any = None) -> "SphereDisplay":
        """Draw the features of samples X from fitted models with `transform`, whose keys are the titles of the panels.

        If X has three columns, its own panel comes first. Without `labels`, colors are by `labels_` of the last model.
        """
        if not isinstance(models, Mapping) or not models:
            raise invalid_parameter("models", models, "a dict from title to fitted model, not empty")
        features = {}
        # The last model comes first here, since its clusters determine the colors of all panels.
        for title in list(models)[::-1]:
            features[title], labels = features_and_labels(models[title], X, labels)
        panels: dict[str, Any] = {"data": X} if np.shape(X)[1:] == (3,) else {}
        return cls(panels | {title: features[title] for title in models}, labels).plot()

    def plot(self, *, columns: int = 4) -> "SphereDisplay":
        """Draw onto a new figure, with at most `columns` panels side by side."""
        across = min(len(self.positions), check_count("columns", columns))
        down = math.ceil(len(self.positions) / across)
        names = [shorten(name, 16) for name in self.blocks.names]
        width = PANEL * across
        height = (PANEL + 0.25) * down + 0.2 * legend_lines(names, width)
        self.figure_, self.axes_ = pyplot().subplots(
            down, across, figsize=(width, height), layout="compressed", squeeze=False
        )
        colors = np.empty(len(self.blocks.order), dtype=object)
        for k in range(len(names)):
            colors[self.blocks.order[self.blocks.edges[k] : self.blocks.edges[k + 1]]] = cluster_color(k)
        farthest = max(float(np.abs(seen[:, :2]).max()) for seen in self.positions.values())
        for ax, (title, seen) in zip(self.axes_.flat, self.positions.items(), strict=False):
            _draw_sphere(ax, self.view)
            _draw_points(ax, seen, colors)
            ax.set_title(shorten(title, 28), fontsize=9)
        half = 1.06 * max(1.0, farthest)
        for ax in self.axes_.flat:
            ax.set(xlim=(-half, half), ylim=(-half, half), xticks=[], yticks=[], aspect="equal")
            ax.axis("off")
        add_cluster_legend(self.figure_, names)
        return self


def viewing_frame(elevation: float, azimuth: float) -> np.ndarray:
    """Return in rows the unit vectors to the right, up and towards a viewer at the given angles in degrees."""
    sin_e, cos_e = math.sin(math.radians(elevation)), math.cos(math.radians(elevation))
    sin_a, cos_a = math.sin(math.radians(azimuth)), math.cos(math.radians(azimuth))
    return np.array(
        [[-sin_a, cos_a, 0.0], [-sin_e * cos_a, -sin_e * sin_a, cos_e], [cos_e * cos_a, cos_e * sin_a, sin_e]]
    )


def _draw_sphere(ax: Any, view: np.ndarray) -> None:
    """Draw the outline of the sphere, and its great circles in the three coordinate planes."""
    circle = np.linspace(0, 2 * np.pi, 181)
    flat = np.stack([np.cos(circle), np.sin(circle), np.zeros_like(circle)])
    ax.fill(*flat[:2], facecolor="0.97", edgecolor="0.55", linewidth=0.8, zorder=0)
    for turn in range(3):
        right, up, near = view @ np.roll(flat, turn, axis=0)
        for side, style in ((near < 0, {"linestyle": ":", "color": "0.8"}), (near >= 0, {"color": "0.75"})):
            ax.plot(np.where(side, right, np.nan), np.where(side, up, np.nan), linewidth=0.7, zorder=1, **style)


def _draw_points(ax: Any, seen: np.ndarray, colors: np.ndarray) -> None:
    """Draw points in the order of their distance, so that near points cover far ones; the far side is pale."""
    size = float(np.clip(3000 / len(seen), 2.0, 16.0))
    order = np.argsort(seen[:, 2], kind="stable")
    far = int(np.sum(seen[:, 2] < 0))
    for part, alpha in ((order[:far], 0.25), (order[far:], 0.85)):
        ax.scatter(seen[part, 0], seen[part, 1], c=list(colors[part]), s=size, alpha=alpha, linewidths=0, zorder=2)

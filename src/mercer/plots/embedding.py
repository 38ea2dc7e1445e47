"""Two components of an embedding as a scatter plot, colored by class if classes are given."""

from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.plots.style import CATEGORIES, axes_or_new, tidy


class EmbeddingDisplay:
    """A scatter plot of two components of an embedding.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        The two components.
    labels : ndarray of shape (n,), optional
        The class of each point.
    names : tuple of two str, default=("component 1", "component 2")
        The labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray | None = None,
        names: tuple[str, str] = ("component 1", "component 2"),
    ) -> None:
        self.points = points
        self.labels = labels
        self.names = names

    @classmethod
    def from_features(
        cls, features: Any, labels: Any = None, *, components: tuple[int, int] = (0, 1), ax: Any = None
    ) -> "EmbeddingDisplay":
        """Draw two columns of a feature matrix of shape (n, h)."""
        features = np.asarray(features)
        if features.ndim != 2 or max(components) >= features.shape[1] or min(components) < 0:
            raise invalid_parameter(
                "components", components, f"two columns of the features, which have shape {features.shape}"
            )
        first, second = components
        names = (f"component {first + 1}", f"component {second + 1}")
        return cls(features[:, [first, second]], None if labels is None else np.asarray(labels), names).plot(ax=ax)

    def plot(self, ax: Any = None, *, title: str = "") -> "EmbeddingDisplay":
        """Draw onto `ax`, or onto a new figure."""
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 4.4))
        self.figure_ = ax.figure
        size = float(np.clip(16000 / max(1, len(self.points)), 3.0, 30.0))
        style = {"s": size, "alpha": 0.75, "linewidths": 0}
        if self.labels is None:
            ax.scatter(*self.points.T, color=CATEGORIES[0], **style)
        else:
            for i, label in enumerate(np.unique(self.labels)):
                inside = self.labels == label
                ax.scatter(*self.points[inside].T, color=CATEGORIES[i % len(CATEGORIES)], label=str(label), **style)
            ax.legend(
                title="class",
                fontsize=8,
                markerscale=max(1.0, 4.0 / size**0.5),
                frameon=False,
                loc="center left",
                bbox_to_anchor=(1.0, 0.5),
            )
        ax.set_xlabel(self.names[0])
        ax.set_ylabel(self.names[1])
        ax.set_title(title)
        tidy(ax)
        return self

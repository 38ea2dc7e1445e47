"""The smallest eigenvalues of a Laplacian and their largest gap, which suggests the number of clusters."""

from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers
from mercer.plots.style import CATEGORIES, axes_or_new, tidy

INSIDE, BEYOND, GAP = CATEGORIES[0], CATEGORIES[9], CATEGORIES[1]


class EigengapDisplay:
    """The smallest eigenvalues of the normalized Laplacian I - D^-1/2 W D^-1/2, with the gap after the k-th marked.

    If the affinity W consists of k separate blocks, k eigenvalues are zero. If k blocks have weak links between them, k
    eigenvalues are near zero, and then there is a gap (von Luxburg, A tutorial on spectral clustering, 2007, section
    8.3). If the largest gap is after another number of clusters, the title says so.

    Parameters
    ----------
    eigenvalues : array-like of shape (m,)
        At least two of the smallest eigenvalues, in any order.
    n_clusters : int, optional
        k, less than m. By default, it is the number of clusters with the largest gap.

    Attributes
    ----------
    eigenvalues : ndarray of shape (m,)
        In ascending order.
    n_clusters : int
        k.
    best : int
        The number of clusters with the largest gap; the first one if gaps are equal.
    gap : float
        The difference between the next eigenvalue and the k-th.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, eigenvalues: Any, n_clusters: int | None = None) -> None:
        values = as_numbers("eigenvalues", eigenvalues)
        if values.ndim != 1 or len(values) < 2:
            raise invalid_parameter("eigenvalues", values.shape, "a vector of shape (m,), of at least two numbers")
        if not np.all(np.isfinite(values)):
            raise invalid_parameter("eigenvalues", float(values[~np.isfinite(values)][0]), "finite throughout")
        self.eigenvalues = np.sort(values)
        gaps = np.diff(self.eigenvalues)
        self.best = int(np.argmax(gaps)) + 1
        self.n_clusters = (
            self.best
            if n_clusters is None
            else check_count(
                "n_clusters", n_clusters, at_most=len(gaps), why=f"one less than the {len(values)} eigenvalues"
            )
        )
        self.gap = float(gaps[self.n_clusters - 1])

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> "EigengapDisplay":
        """Draw `eigenvalues_` of a fitted clustering, with the gap after its `n_clusters_`."""
        if not hasattr(model, "eigenvalues_") or not hasattr(model, "n_clusters_"):
            raise invalid_parameter("model", model, "a fitted clustering with eigenvalues_ and n_clusters_")
        return cls(model.eigenvalues_, model.n_clusters_).plot(ax=ax)

    def plot(self, ax: Any = None) -> "EigengapDisplay":
        """Draw onto `ax`, or onto a new figure."""
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 3.6))
        self.figure_ = ax.figure
        values, k, m = self.eigenvalues, self.n_clusters, len(self.eigenvalues)
        place = np.arange(1, m + 1)
        ax.axhspan(values[k - 1], values[k], color=GAP, alpha=0.25, linewidth=0)
        ax.axvline(k + 0.5, color=GAP, linewidth=1.2, linestyle="--")
        size = float(np.clip(160 / m, 2.0, 6.0))
        for part, color in ((slice(k), INSIDE), (slice(k, None), BEYOND)):
            ax.plot(place[part], values[part], "o", color=color, markersize=size, clip_on=False)
        ax.set_xlim(0.5, m + 0.5)
        # The axis begins at zero, so that a small gap looks small.
        low, high = min(0.0, values[0]), max(values[-1], 0.0)
        room = 0.05 * (high - low) or 1.0
        ax.set_ylim(low - room, high + room)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("eigenvalue, from the smallest")
        ax.set_ylabel("eigenvalue of the Laplacian")
        title = f"gap of {self.gap:.3g} after {_clusters(k)}"
        largest = values[self.best] - values[self.best - 1]
        if largest > self.gap:
            title += f"\nthe largest is {largest:.3g}, after {_clusters(self.best)}"
        ax.set_title(title, fontsize=10)
        tidy(ax)
        return self


def _clusters(k: int) -> str:
    return "1 cluster" if k == 1 else f"{k} clusters"

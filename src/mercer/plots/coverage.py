"""The number of most important landmarks that are needed to show every class."""

from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.explain import Coverage, coverage
from mercer.plots.style import CATEGORIES, axes_or_new, legend_below, tidy


class CoverageDisplay:
    """The number of classes among the first k landmarks, in three orders.

    The orders are by the norm of the coefficients, random (the mean over orders), and the best possible one.

    Parameters
    ----------
    coverage : Coverage
        The result of `mercer.explain.coverage`.
    name : str, optional
        The name of the embedding, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, coverage: Coverage, name: str | None = None) -> None:
        if not isinstance(coverage, Coverage):
            raise invalid_parameter("coverage", coverage, "what mercer.explain.coverage returns")
        self.coverage = coverage
        self.name = name

    @classmethod
    def from_estimator(cls, embedding: Any, y: Any, *, name: str | None = None, ax: Any = None) -> "CoverageDisplay":
        """Draw the coverage of a fitted embedding; y has the classes of the rows to which it was fitted."""
        indices = getattr(embedding, "landmark_indices_", None)
        if indices is None:
            raise invalid_parameter("embedding", embedding, "a fitted embedding whose landmarks are rows of the fit")
        found = coverage(embedding.coefficients_, np.asarray(y)[indices])
        return cls(found, type(embedding).__name__ if name is None else name).plot(ax=ax)

    def plot(self, ax: Any = None) -> "CoverageDisplay":
        """Draw onto `ax`, or onto a new figure. The axis ends soon after all classes have been reached."""
        found = self.coverage
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 3.6))
        self.figure_ = ax.figure
        k = np.arange(1, len(found.curve) + 1)
        ax.step(k, found.curve_best, where="post", color="0.65", linewidth=1.2, label=f"at best: {found.kappa_best}")
        label = f"in a random order: {found.kappa_random:.3g} on average"
        ax.plot(k, found.curve_random, "--", color=CATEGORIES[5], linewidth=1.5, label=label)
        label = f"by the norm of the coefficients: {found.kappa}"
        ax.step(k, found.curve, where="post", color=CATEGORIES[0], linewidth=1.8, label=label)
        ax.plot([found.kappa], [found.kappa_best], "o", color=CATEGORIES[0], markersize=5)
        ax.set_xlim(0, min(len(k), 1.5 * max(found.kappa, found.kappa_random)) + 1)
        ax.set_ylim(0, 1.08 * found.kappa_best)
        ax.locator_params(axis="y", integer=True)
        ax.set_xlabel("landmarks")
        ax.set_ylabel("classes among them")
        ax.set_title("" if self.name is None else self.name, fontsize=10)
        legend_below(ax)
        tidy(ax)
        return self

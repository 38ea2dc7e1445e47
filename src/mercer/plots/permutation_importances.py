"""Permutation importances: how much the loss on new rows grows without each input, with an interval for each."""

from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain import PermutationImportances, permutation_importances
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, percent, tidy


class PermutationImportancesDisplay:
    """A point and an interval for each input, with the largest at the top. An input at the line 0 is not needed.

    Parameters
    ----------
    importances : PermutationImportances
        The result of `mercer.explain.permutation_importances`.
    name : str, optional
        The name of the model, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, importances: PermutationImportances, name: str | None = None) -> None:
        if not isinstance(importances, PermutationImportances):
            raise invalid_parameter("importances", importances, "what mercer.explain.permutation_importances returns")
        self.importances = importances
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> "PermutationImportancesDisplay":
        """Draw the permutation importances of a model on rows X that it has not seen.

        `options` are those of `mercer.explain.permutation_importances`.
        """
        found = permutation_importances(model, X, y, **options)
        return cls(found, type(model).__name__ if name is None else name).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_features: int = 20) -> "PermutationImportancesDisplay":
        """Draw onto `ax`, or onto a new figure. Only the first `max_features` inputs are drawn."""
        found = self.importances
        order = np.argsort(-found.mean, kind="stable")
        drawn = order[: check_count("max_features", max_features)]
        mean, places = found.mean[drawn], np.arange(len(drawn))
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 1.3 + 0.26 * len(drawn)))
        self.figure_ = ax.figure
        reach = np.stack([mean - found.lower[drawn], found.upper[drawn] - mean])
        ax.axvline(0.0, color="0.6", linewidth=0.9, zorder=1)
        ax.errorbar(mean, places, xerr=reach, fmt="o", color=CATEGORIES[0], markersize=4, elinewidth=1.4)
        ax.set_yticks(places, [shorten(found.names[k]) for k in drawn], fontsize=9)
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel(f"growth of {shorten(found.loss_name)} when permuted,\n{percent(found.coverage)} intervals")
        title = "" if self.name is None else shorten(self.name, 36)
        ax.set_title(f"{title}\n{len(drawn)} of {len(order)} inputs" if len(drawn) < len(order) else title, fontsize=10)
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        return self

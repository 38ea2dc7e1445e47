"""Effect curves with their bands, which show how predictions change with the values of a column."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain import EffectCurve, effect_curves
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, percent, pyplot, tidy

# The length to which names of categories are shortened, so that a dozen of them fit below a small axis.
LEVEL_LENGTH = 12


class EffectDisplay:
    """Effect curves of several columns side by side on one scale, with the largest effect first.

    Parameters
    ----------
    curves : sequence of EffectCurve
        The result of `mercer.explain.effect_curves`.
    name : str, optional
        The name of the model, for the title.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, curves: Sequence[EffectCurve], name: str | None = None) -> None:
        self.curves = [curves] if isinstance(curves, EffectCurve) else list(curves)
        if not self.curves or not all(isinstance(curve, EffectCurve) for curve in self.curves):
            raise invalid_parameter("curves", curves, "what mercer.explain.effect_curves returns, one curve at least")
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        columns: Sequence[Any] | None = None,
        *,
        name: str | None = None,
        max_columns: int = 9,
        **options: Any,
    ) -> "EffectDisplay":
        """Draw how the predictions of a fitted model change with columns of X.

        `options` are those of `mercer.explain.effect_curve`.
        """
        curves = effect_curves(model, X, columns, **options)
        return cls(curves, type(model).__name__ if name is None else name).plot(max_columns=max_columns)

    def plot(self, *, max_columns: int = 9) -> "EffectDisplay":
        """Draw onto a new figure. Only the `max_columns` curves with the largest effects are drawn."""
        strength = [float(np.ptp(curve.effect)) for curve in self.curves]
        order = np.argsort(-np.array(strength), kind="stable")[: check_count("max_columns", max_columns)]
        drawn = [self.curves[k] for k in order]
        across = min(3, len(drawn))
        down = -(-len(drawn) // across)
        size = (0.6 + 2.5 * across, 0.7 + 2.2 * down)
        self.figure_, axes = pyplot().subplots(
            down, across, figsize=size, sharey=True, squeeze=False, layout="constrained"
        )
        for ax in axes.ravel()[len(drawn) :]:
            ax.set_visible(False)
        self.axes_ = list(axes.ravel()[: len(drawn)])
        for ax, curve in zip(self.axes_, drawn, strict=True):
            _draw(ax, curve)
        for row in axes:
            row[0].set_ylabel(shorten(drawn[0].output, 24), fontsize=9)
        title = "" if self.name is None else f"{shorten(self.name, 36)}: "
        counted = f"{len(drawn)} of {len(self.curves)} columns, " if len(drawn) < len(self.curves) else ""
        self.figure_.suptitle(f"{title}{counted}bands of {percent(drawn[0].coverage)}", fontsize=10)
        return self


def _draw(ax: Any, curve: EffectCurve) -> None:
    ax.axhline(0.0, color="0.75", linewidth=0.8, zorder=1)
    if curve.column == "category":
        places = np.arange(len(curve.values))
        reach = np.stack([curve.effect - curve.lower, curve.upper - curve.effect])
        ax.errorbar(places, curve.effect, yerr=reach, fmt="o", color=CATEGORIES[0], markersize=4, elinewidth=1.4)
        labels = [shorten(label, LEVEL_LENGTH) for label in curve.labels]
        step = -(-len(labels) // 12)
        upright = sum(map(len, labels)) <= 20
        ax.set_xticks(places[::step], labels[::step], fontsize=8, rotation=0 if upright else 90)
        ax.set_xlim(-0.5, len(labels) - 0.5)
    else:
        if curve.column == "date":
            x = curve.values.astype("datetime64[ns]")
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator(minticks=2, maxticks=4)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            ax.tick_params(axis="x", labelsize=8)
        else:
            x = curve.values.astype(np.float64)
            ax.locator_params(axis="x", nbins=4)
            ax.tick_params(axis="x", labelsize=8)
        ax.fill_between(x, curve.lower, curve.upper, color=CATEGORIES[0], alpha=0.2, linewidth=0)
        ax.plot(x, curve.effect, color=CATEGORIES[0], linewidth=1.7)
        # Marks show where the rows are: there are about as many rows between any two neighboring values of a curve.
        ax.plot(x, np.zeros(len(x)), "|", color="0.45", markersize=5, transform=ax.get_xaxis_transform(), clip_on=False)
    ax.set_title(shorten(curve.name, 26), fontsize=9)
    tidy(ax)

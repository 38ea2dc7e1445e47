"""The importances of two or three models against each other, which shows whether they agree (rfm-and-ard, 3.2)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.plots.importances import check_importances, check_names, importances_of
from mercer.plots.labels import label_points, settle_layout, shorten
from mercer.plots.style import CATEGORIES, percent, pyplot, tidy


class Correlation(NamedTuple):
    """The correlations of two vectors of importances; NaN if one of them is constant up to rounding."""

    pearson: float
    spearman: float


def correlate(a: np.ndarray, b: np.ndarray) -> Correlation:
    """Return the correlation of two vectors, neither of which is zero, and the correlation of their ranks.

    One large weight determines the first, which says whether the models agree on the most important input. The second
    says whether they agree on all others.
    """
    # The range is not compared with zero, since the rounding errors of a constant have an order without meaning.
    if min(np.ptp(a) / np.abs(a).max(), np.ptp(b) / np.abs(b).max()) < 1e-12:
        return Correlation(float("nan"), float("nan"))
    ranks = rankdata(a), rankdata(b)
    return Correlation(float(np.corrcoef(a, b)[0, 1]), float(np.corrcoef(*ranks)[0, 1]))


class AgreementDisplay:
    """A scatter plot for each pair of models, with a point for each input, and both correlations in the title.

    The axes have a square root scale, on which small shares beside a large one can be distinguished, and which has a
    zero.

    Parameters
    ----------
    importances : dict from str to array-like of shape (d,)
        The importances of two or three models, by name. They are not negative and have any scale; their shares, which
        sum to 1, are drawn.
    feature_names : sequence of str, optional
        x0, x1, ... by default.

    Attributes
    ----------
    correlations : dict from pair of names to Correlation
        With the fields `pearson` and `spearman`.
    axes_ : ndarray of matplotlib Axes
        One for each pair.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    """

    def __init__(self, importances: Mapping[str, Any], feature_names: Sequence[str] | None = None) -> None:
        if not isinstance(importances, Mapping) or len(importances) not in (2, 3):
            raise invalid_parameter("importances", importances, "a dict with the importances of two or three models")
        self.importances = {
            name: check_importances(f"importances[{name!r}]", values) for name, values in importances.items()
        }
        lengths = {name: len(values) for name, values in self.importances.items()}
        if len(set(lengths.values())) > 1:
            raise invalid_parameter("importances", lengths, "of the same length for all models")
        self.feature_names = check_names(feature_names, next(iter(lengths.values())))
        self.correlations = {
            (a, b): correlate(self.importances[a], self.importances[b]) for a, b in combinations(self.importances, 2)
        }

    @classmethod
    def from_estimators(
        cls, models: Mapping[str, Any], *, feature_names: Sequence[str] | None = None, ax: Any = None
    ) -> "AgreementDisplay":
        """Draw fitted models by name, each with a `kernel_` or `feature_importances_`."""
        if not isinstance(models, Mapping):
            raise invalid_parameter("models", models, "a dict from name to fitted model")
        if feature_names is None:
            known = [model.feature_names_in_ for model in models.values() if hasattr(model, "feature_names_in_")]
            feature_names = known[0] if known else None
        return cls({name: importances_of(model) for name, model in models.items()}, feature_names).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_names: int = 12) -> "AgreementDisplay":
        """Draw onto `ax`, which is an Axes or a sequence with one for each pair, or onto a new figure.

        The `max_names` inputs with the largest share in either model are named, if there is room.
        """
        check_count("max_names", max_names, at_least=0)
        n_pairs = len(self.correlations)
        if ax is None:
            _, ax = pyplot().subplots(1, n_pairs, figsize=(4.2 * n_pairs, 4.4), layout="constrained", squeeze=False)
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(self.axes_) != n_pairs:
            raise invalid_parameter("ax", ax, f"as many Axes as there are pairs of models, {n_pairs}")
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        panels = list(zip(self.axes_, self.correlations, strict=True))
        for panel, (a, b) in panels:
            self._draw_pair(panel, a, b)
        # Names are placed after all panels are drawn, since each panel takes room from the others.
        settle_layout(self.ax_)
        for panel, (a, b) in panels:
            points = np.stack([self.importances[a], self.importances[b]], axis=1)
            order = np.argsort(-points.max(axis=1), kind="stable")[:max_names]
            label_points(panel, points, [shorten(name, 24) for name in self.feature_names], order=order.tolist())
        return self

    def _draw_pair(self, ax: Any, a: str, b: str) -> None:
        largest = max(self.importances[a].max(), self.importances[b].max())
        limit = 1.25 * largest
        ax.plot([0, limit], [0, limit], color="0.7", linewidth=0.8, zorder=0)
        ax.scatter(self.importances[a], self.importances[b], s=22, color=CATEGORIES[0], alpha=0.8, linewidths=0)
        ticks = _ticks(largest)
        ax.set_xscale("function", functions=(_signed_root, _signed_square))
        ax.set_yscale("function", functions=(_signed_root, _signed_square))
        for axis, name in ((ax.xaxis, a), (ax.yaxis, b)):
            axis.set_ticks(ticks, [percent(tick) for tick in ticks])
            axis.set_label_text(f"share in {shorten(name, 36)}")
        # The axes begin a little below zero, so that points at zero are not cut.
        ax.set_xlim(-0.001 * limit, limit)
        ax.set_ylim(-0.001 * limit, limit)
        pearson, spearman = (f"{value:.2f}" if np.isfinite(value) else "undefined" for value in self.correlations[a, b])
        ax.set_title(f"Pearson {pearson}, Spearman {spearman}", fontsize=10)
        ax.set_aspect("equal")
        tidy(ax)


def _signed_root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _signed_square(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.square(values)


def _ticks(largest: float) -> list[float]:
    """Return zero and round shares that are well apart on the square root scale."""
    ticks: list[float] = []
    for exponent in range(0, -12, -1):
        for step in (1, 0.5, 0.2):
            share = step * 10.0**exponent
            room = ticks[-1] ** 0.5 - share**0.5 if ticks else 1.0
            if share <= largest and min(room, share**0.5) > 0.14 * largest**0.5:
                ticks.append(share)
    return [0.0, *reversed(ticks)]

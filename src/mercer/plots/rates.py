"""Coding rates and ranks over epochs, which show whether clusters become subspaces (Figure 3, MLC)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, pyplot, series_style, tidy

# With more clusters than this, lines cannot be distinguished, and the spread of the ranks is drawn instead.
MOST_CLUSTERS = 10
# With more epochs than this, marks would overlap.
MOST_MARKS = 40
ALL, SPREAD = CATEGORIES[7], CATEGORIES[0]


class RatesDisplay:
    """The coding rates R, R_c and R - R_c over the epochs, and below them the numerical rank of each cluster.

    If R stays large, features fill their space. If R_c and the ranks fall, each cluster comes to lie in a subspace of
    few dimensions. A dashed line marks the beginning of the second stage. For more than ten clusters, the median, the
    middle half and the range of the ranks are drawn.

    Parameters
    ----------
    rates : array-like of shape (t,)
        R of all features. NaN means here and below that a number was not computed in an epoch.
    cluster_rates : array-like of shape (t,)
        R_c of the features by cluster.
    ranks : sequence of t sequences of numbers, optional
        The rank of each cluster in each epoch. An epoch may have None or fewer ranks, but not all epochs.
    epochs : array-like of shape (t,), optional
        The numbers of the epochs, not descending; 0, 1, 2, ... by default.
    second_stage : int, optional
        The position in the arrays at which the second stage begins, from 1 to t - 1.
    all_ranks : array-like of shape (t,), optional
        The numerical rank of all features together.
    names : sequence of str, optional
        The names of the clusters; 0, 1, 2, ... by default.

    Attributes
    ----------
    rates, cluster_rates, reductions, epochs : ndarray of shape (t,)
        `reductions` is R - R_c.
    ranks : ndarray of shape (t, k) or None
    axes_ : ndarray of matplotlib Axes
        The axes of the rates and, if there are ranks, those of the ranks.
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        rates: Any,
        cluster_rates: Any,
        ranks: Sequence[Any] | None = None,
        *,
        epochs: Any = None,
        second_stage: int | None = None,
        all_ranks: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.rates = _check_curve("rates", rates)
        t = len(self.rates)
        self.cluster_rates = _check_curve("cluster_rates", cluster_rates, t)
        if np.all(np.isnan(self.rates)) and np.all(np.isnan(self.cluster_rates)):
            raise invalid_parameter("rates", float("nan"), "a number somewhere, or else cluster_rates")
        self.reductions = self.rates - self.cluster_rates
        self.ranks = None if ranks is None else _check_ranks(ranks, t)
        self.epochs = np.arange(t, dtype=float) if epochs is None else _check_epochs(epochs, t)
        self.all_ranks = None if all_ranks is None else _check_curve("all_ranks", all_ranks, t)
        self.second_stage = (
            None
            if second_stage is None
            else check_count("second_stage", second_stage, at_most=t - 1, why=f"one less than the {t} epochs")
        )
        k = 0 if self.ranks is None else self.ranks.shape[1]
        self.names = [str(j) for j in range(k)] if names is None else list(names)
        if len(self.names) != k:
            raise invalid_parameter("names", len(self.names), f"one per cluster, of which ranks have {k}")

    @classmethod
    def from_estimator(cls, model: Any, *, names: Sequence[str] | None = None) -> "RatesDisplay":
        """Draw `history_` of a fitted clustering, whose epochs may have "rate", "cluster_rate", "ranks" and "rank".

        Epochs whose "stage" is "final" belong to the second stage. They are drawn after those of the first stage, also
        if their numbers begin at 0 again.
        """
        history = getattr(model, "history_", None)
        if not history:
            raise invalid_parameter("model", model, "a fitted clustering with epochs in history_")
        epochs = np.array([record["epoch"] for record in history], dtype=float)
        later = np.array([record.get("stage") == "final" for record in history])
        second = int(np.argmax(later)) or None
        if second is not None and epochs[second] <= epochs[second - 1]:
            epochs[second:] += epochs[second - 1] + 1 - epochs[second]
        columns = {key: [_or_nan(record.get(key)) for record in history] for key in ("rate", "cluster_rate", "rank")}
        ranks = [record.get("ranks") for record in history]
        return cls(
            columns["rate"],
            columns["cluster_rate"],
            ranks if any(row is not None for row in ranks) else None,
            epochs=epochs,
            second_stage=second,
            names=names,
            all_ranks=None if np.all(np.isnan(columns["rank"])) else columns["rank"],
        ).plot()

    def plot(self) -> "RatesDisplay":
        """Draw onto a new figure."""
        panels = 1 + (self.ranks is not None or self.all_ranks is not None)
        self.figure_, axes = pyplot().subplots(
            panels, 1, figsize=(6.6, 0.4 + 2.4 * panels), layout="constrained", sharex=True, squeeze=False
        )
        self.axes_ = axes[:, 0]
        self._draw_rates(self.axes_[0])
        if panels == 2:
            self._draw_ranks(self.axes_[1])
        for ax in self.axes_:
            if self.second_stage is not None:
                begin = self.epochs[self.second_stage - 1 : self.second_stage + 1].mean()
                label = "second stage" if ax is self.axes_[0] else None
                ax.axvline(begin, color="0.5", linewidth=1.0, linestyle="--", zorder=0, label=label)
            tidy(ax)
            ax.legend(**self._legend_style(ax))
        if self.epochs[0] == self.epochs[-1]:
            self.axes_[-1].set_xlim(self.epochs[0] - 1, self.epochs[0] + 1)
        self.axes_[-1].xaxis.get_major_locator().set_params(integer=True)
        self.axes_[-1].set_xlabel("epoch")
        return self

    def _draw_rates(self, ax: Any) -> None:
        names = ("$R$, all features", "$R_c$, by cluster", r"$\Delta R = R - R_c$")
        for i, (name, curve) in enumerate(zip(names, (self.rates, self.cluster_rates, self.reductions), strict=True)):
            self._draw(ax, curve, label=name, linewidth=1.6, **series_style(i))
        ax.set_ylabel("coding rate")
        known = ~np.isnan(self.reductions)
        if known.any():
            last, largest = (f"{number:.3g}" for number in (self.reductions[known][-1], self.reductions[known].max()))
            best = self.epochs[np.nanargmax(self.reductions)]
            more = "" if largest == last else f"; the largest is {largest}, at epoch {best:g}"
            ax.set_title(rf"$\Delta R$ ends at {last}{more}", fontsize=10)

    def _draw_ranks(self, ax: Any) -> None:
        if self.ranks is not None and self.ranks.shape[1] > MOST_CLUSTERS:
            self._draw_spread(ax, self.ranks)
        elif self.ranks is not None:
            for j, curve in enumerate(self.ranks.T):
                self._draw(ax, curve, label=shorten(self.names[j], 16), linewidth=1.1, **series_style(j))
        if self.all_ranks is not None:
            # The line of a cluster may be black too, but it is thinner.
            self._draw(ax, self.all_ranks, label="all together", color=ALL, linewidth=2.5, marker="o")
        ax.set_ylim(bottom=0)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_ylabel("numerical rank")

    def _draw_spread(self, ax: Any, ranks: np.ndarray) -> None:
        known = ~np.all(np.isnan(ranks), axis=1)
        low, first, middle, third, high = np.nanpercentile(ranks[known], [0, 25, 50, 75, 100], axis=1)
        epochs = self.epochs[known]
        ax.fill_between(epochs, low, high, color=SPREAD, alpha=0.15, linewidth=0, label="range")
        ax.fill_between(epochs, first, third, color=SPREAD, alpha=0.3, linewidth=0, label="middle half")
        ax.plot(
            epochs,
            middle,
            color=SPREAD,
            linewidth=1.6,
            marker=_marker(epochs, "o"),
            markersize=3.5,
            label=f"median of {ranks.shape[1]}",
        )

    def _draw(self, ax: Any, curve: np.ndarray, **style: Any) -> None:
        """Draw a curve through the epochs in which it is known."""
        known = ~np.isnan(curve)
        style["marker"] = _marker(curve[known], style["marker"])
        ax.plot(self.epochs[known], curve[known], markersize=3.5, **style)

    def _legend_style(self, ax: Any) -> dict[str, Any]:
        by_cluster = ax is not self.axes_[0] and self.ranks is not None
        return {
            "title": "cluster" if by_cluster else None,
            "loc": "upper left",
            "bbox_to_anchor": (1.0, 1.03),
            "fontsize": 8,
            "title_fontsize": 8,
            "frameon": False,
        }


def _marker(points: np.ndarray, marker: str) -> str:
    return marker if len(points) <= MOST_MARKS else "none"


def _or_nan(value: Any) -> Any:
    return float("nan") if value is None else value


def _check_curve(name: str, values: Any, t: int | None = None) -> np.ndarray:
    """Return a curve with a number for each epoch, NaN where it is not known; raise if there are not t epochs."""
    curve = as_numbers(name, values)
    if curve.ndim != 1 or not curve.size or (t is not None and len(curve) != t):
        raise invalid_parameter(name, curve.shape, f"one number per epoch, of shape ({'t' if t is None else t},)")
    if np.any(np.isinf(curve)):
        raise invalid_parameter(name, float(curve[np.isinf(curve)][0]), "finite, or NaN where it was not computed")
    return curve


def _check_ranks(ranks: Any, t: int) -> np.ndarray:
    """Return the ranks of t epochs as a matrix with a row for each epoch, NaN where they are not known."""
    if isinstance(ranks, str) or not hasattr(ranks, "__len__") or len(ranks) != t:
        raise invalid_parameter("ranks", ranks, f"a sequence of {t}, the ranks of the clusters in each epoch")
    rows = [np.empty(0) if row is None else as_numbers(f"ranks[{i}]", row) for i, row in enumerate(ranks)]
    for i, row in enumerate(rows):
        if row.ndim != 1 or np.any(np.isinf(row)) or np.any(row < 0):
            raise invalid_parameter(f"ranks[{i}]", ranks[i], "a rank per cluster, at least 0, or None")
    table = np.full((t, max(map(len, rows))), np.nan)
    if not table.size:
        raise invalid_parameter("ranks", ranks, "known in at least one epoch")
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def _check_epochs(epochs: Any, t: int) -> np.ndarray:
    values = _check_curve("epochs", epochs, t)
    if np.any(np.isnan(values)) or np.any(np.diff(values) < 0):
        raise invalid_parameter("epochs", epochs, "finite and not descending")
    return values

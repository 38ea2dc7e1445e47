"""The scores of methods over data sets and seeds on one scale, as violins with boxes (Figure 1 of rfm-and-ard)."""

from collections.abc import Mapping
from textwrap import fill
from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers, common_data_sets
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, tidy


def normalized_scores(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """Return scores mapped to [0, 1] for each data set, so that data sets with different scales are comparable.

    The smallest score on a data set, over all methods and seeds, becomes 0, and the largest 1, as in section 3.1 of
    rfm-and-ard. One very bad run therefore moves all others on its data set towards the good end. If all scores are
    equal, they become 0.

    Parameters
    ----------
    scores : dict from method to dict from data set to array-like of shape (n_seeds,)
        All methods have the same data sets; the number of seeds may differ.
    """
    data_sets = common_data_sets(scores)
    arrays = {
        method: {data_set: _check_scores(method, data_set, of_method[data_set]) for data_set in data_sets}
        for method, of_method in scores.items()
    }
    for data_set in data_sets:
        everything = np.concatenate([of_method[data_set] for of_method in arrays.values()])
        low, high = everything.min(), everything.max()
        for of_method in arrays.values():
            of_method[data_set] = (of_method[data_set] - low) / (high - low if high > low else 1.0)
    return arrays


def _check_scores(method: str, data_set: str, values: Any) -> np.ndarray:
    array = np.atleast_1d(as_numbers(f"scores[{method!r}][{data_set!r}]", values))
    if array.ndim != 1 or not array.size or not np.all(np.isfinite(array)):
        raise invalid_parameter(f"scores[{method!r}][{data_set!r}]", values, "one finite number per seed, not empty")
    return array


class ScoresDisplay:
    """A violin with a box for each method, over its normalized scores on all data sets and seeds.

    Methods are sorted by their median, with the best at the top. A box spans the quartiles, with a line at the median.
    Whiskers are at most 1.5 times as long as the box.

    Parameters
    ----------
    scores : dict from method to dict from data set to array-like of shape (n_seeds,)
        The scores of all methods on the same data sets, before normalization.
    score_name : str, default="score"
        The name of the score, such as "RMSE".
    lower_is_better : bool, default=True
        Whether a smaller score is better.

    Attributes
    ----------
    normalized : dict from method to dict from data set to ndarray
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        scores: Mapping[str, Mapping[str, Any]],
        *,
        score_name: str = "score",
        lower_is_better: bool = True,
    ) -> None:
        self.normalized = normalized_scores(scores)
        self.score_name = score_name
        self.lower_is_better = lower_is_better

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, Mapping[str, Any]],
        *,
        score_name: str = "score",
        lower_is_better: bool = True,
        ax: Any = None,
    ) -> "ScoresDisplay":
        """Normalize and draw scores."""
        return cls(scores, score_name=score_name, lower_is_better=lower_is_better).plot(ax=ax)

    def plot(self, ax: Any = None) -> "ScoresDisplay":
        """Draw onto `ax`, or onto a new figure."""
        pooled = {method: np.concatenate(list(of.values())) for method, of in self.normalized.items()}
        sign = 1 if self.lower_is_better else -1
        methods = sorted(pooled, key=lambda method: sign * float(np.median(pooled[method])))
        values = [pooled[method] for method in methods]
        places = range(len(methods))
        self.ax_ = ax = axes_or_new(ax, figsize=(5.6, 1.3 + 0.42 * len(methods)))
        self.figure_ = ax.figure
        violins = ax.violinplot(values, positions=places, widths=0.85, orientation="horizontal", showextrema=False)
        for body in violins["bodies"]:
            body.set(facecolor=CATEGORIES[4], edgecolor=CATEGORIES[0], linewidth=0.8, alpha=0.45)
        ax.boxplot(
            values,
            positions=places,
            widths=0.2,
            orientation="horizontal",
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": "white", "edgecolor": CATEGORIES[0], "linewidth": 0.9},
            medianprops={"color": CATEGORIES[5], "linewidth": 2.0},
            whiskerprops={"color": CATEGORIES[0]},
            capprops={"color": CATEGORIES[0]},
            flierprops={"marker": ".", "markersize": 3, "markerfacecolor": CATEGORIES[0], "markeredgewidth": 0},
        )
        ax.set_yticks(places, [shorten(method) for method in methods])
        ax.set_ylim(len(methods) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        better = "lower" if self.lower_is_better else "higher"
        ax.set_xlabel(fill(f"{shorten(self.score_name)}, normalized ({better} is better)", 40))
        data_sets = len(next(iter(self.normalized.values())))
        sizes = sorted({len(of_method) for of_method in values})
        count = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        plurals = "s" * (data_sets > 1), "s" * (sizes[-1] > 1)
        ax.set_title(f"{data_sets} data set{plurals[0]}, {count} run{plurals[1]} per method", fontsize=10)
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        return self

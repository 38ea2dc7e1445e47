"""Box plots of how well pairs of methods agree on importances, for each data set (Figure 2 of rfm-and-ard)."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mercer.checks import check_choice
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.metrics import as_numbers
from mercer.plots.agreement import Correlation, correlate
from mercer.plots.importances import check_importances
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, legend_below, tidy


class CorrelationDisplay:
    """A line for each data set, with a box for each pair of methods, over the correlations of the splits.

    A box spans the quartiles, with a line at the median. Whiskers are at most 1.5 times as long as the box. Every split
    is a point.

    Parameters
    ----------
    correlations : dict from data set to dict from pair to sequence of float
        A pair is two names or one text. NaN, which is the correlation with a constant, is left out with a warning.
    label : str, default="correlation"
        The name of the correlation on the axis, such as "Spearman correlation".

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, correlations: Mapping[str, Mapping[Any, Any]], label: str = "correlation") -> None:
        if not isinstance(correlations, Mapping) or not correlations:
            raise invalid_parameter(
                "correlations", correlations, "a dict from data set to a dict from pair to correlations, not empty"
            )
        self.correlations: dict[str, dict[Any, np.ndarray]] = {}
        for data_set, of_pairs in correlations.items():
            self.correlations[data_set] = _check_pairs(data_set, of_pairs)
        if not any(len(values) for of_pairs in self.correlations.values() for values in of_pairs.values()):
            raise invalid_parameter("correlations", correlations, "a number (not NaN) in at least one place")
        self.label = label

    @classmethod
    def from_importances(
        cls, importances: Mapping[str, Mapping[str, Any]], *, kind: str = "spearman", ax: Any = None
    ) -> "CorrelationDisplay":
        """Draw all pairs of methods from `importances[data set][method]`, of shape (n_splits, d).

        Row i belongs to the same split for all methods. `kind` is "spearman" or "pearson".
        """
        check_choice("kind", kind, Correlation._fields)
        if not isinstance(importances, Mapping):
            raise invalid_parameter("importances", importances, "a dict from data set to a dict from method to rows")
        correlations: dict[str, dict[Any, list[float]]] = {}
        for data_set, of_methods in importances.items():
            where = f"importances[{data_set!r}]"
            if not isinstance(of_methods, Mapping) or len(of_methods) < 2:
                raise invalid_parameter(where, of_methods, "a dict from method to rows, with two methods at least")
            rows = {method: as_numbers(f"{where}[{method!r}]", values) for method, values in of_methods.items()}
            shapes = {method: values.shape for method, values in rows.items()}
            if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 2:
                raise invalid_parameter(where, shapes, "of shape (n_splits, d), the same for all methods")
            shares = {
                method: [check_importances(f"{where}[{method!r}]", row) for row in values]
                for method, values in rows.items()
            }
            correlations[data_set] = {
                (a, b): [getattr(correlate(p, q), kind) for p, q in zip(shares[a], shares[b], strict=True)]
                for a, b in combinations(shares, 2)
            }
        return cls(correlations, f"{kind.capitalize()} correlation").plot(ax=ax)

    def plot(self, ax: Any = None) -> "CorrelationDisplay":
        """Draw onto `ax`, or onto a new figure. Data sets and pairs keep their order, from the top down."""
        tables = list(self.correlations.values())
        pairs = list(dict.fromkeys(pair for of_pairs in tables for pair in of_pairs if len(of_pairs[pair])))
        height = len(self.correlations) * (0.15 + 0.16 * len(pairs))
        self.ax_ = ax = axes_or_new(ax, figsize=(5.6, 1.2 + 0.2 * len(pairs) + height))
        self.figure_ = ax.figure
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        width = 0.8 / len(pairs)
        for k, pair in enumerate(pairs):
            rows = [(i, of_pairs[pair]) for i, of_pairs in enumerate(tables) if len(of_pairs.get(pair, ()))]
            heights = [i + (k - (len(pairs) - 1) / 2) * width for i, _ in rows]
            color = CATEGORIES[k % len(CATEGORIES)]
            ax.boxplot(
                [values for _, values in rows],
                positions=heights,
                widths=0.8 * width,
                orientation="horizontal",
                patch_artist=True,
                showfliers=False,
                manage_ticks=False,
                label=_pair_name(pair),
                boxprops={"facecolor": color, "alpha": 0.55, "linewidth": 0.8},
                medianprops={"color": "black"},
                whiskerprops={"linewidth": 0.8},
                capprops={"linewidth": 0.8},
            )
            for at, (_, values) in zip(heights, rows, strict=True):
                ax.plot(
                    values,
                    np.full(len(values), at),
                    "o",
                    color=color,
                    markeredgecolor="0.2",
                    markeredgewidth=0.4,
                    markersize=2.8,
                    zorder=3,
                )
        for i in range(1, len(self.correlations)):
            ax.axhline(i - 0.5, color="0.9", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(self.correlations)), [shorten(name) for name in self.correlations])
        ax.set_ylim(len(self.correlations) - 0.5, -0.5)
        lowest = min(values.min(initial=0.0) for of_pairs in tables for values in of_pairs.values())
        ax.set_xlim(lowest - 0.03, 1.03)
        step = 0.2 if lowest > -0.2 else 0.5
        ax.set_xticks(np.arange(np.ceil(lowest / step), 1 / step + 1) * step)
        ax.set_xlabel(f"{self.label} of the importances")
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        legend_below(ax)
        return self


def _pair_name(pair: Any) -> str:
    return pair if isinstance(pair, str) else " and ".join(shorten(name, 24) for name in pair)


def _check_pairs(data_set: str, of_pairs: Any) -> dict[Any, np.ndarray]:
    """Return the correlations of one data set as arrays without NaN."""
    where = f"correlations[{data_set!r}]"
    if not isinstance(of_pairs, Mapping) or not of_pairs:
        raise invalid_parameter(where, of_pairs, "a dict from pair to correlations, not empty")
    checked = {}
    for pair, values in of_pairs.items():
        if not isinstance(pair, str) and not (isinstance(pair, tuple) and len(pair) == 2):
            raise invalid_parameter(f"a pair of {where}", pair, "two names or one text")
        array = np.atleast_1d(as_numbers(f"{where}[{pair!r}]", values))
        defined = array[~np.isnan(array)]
        # Rounding may make a correlation slightly larger than 1.
        if array.ndim != 1 or not array.size or np.any(np.abs(defined) > 1 + 1e-9):
            raise invalid_parameter(f"{where}[{pair!r}]", values, "a sequence of numbers from -1 to 1")
        if len(defined) < len(array):
            warn_user(
                f"{len(array) - len(defined)} of {len(array)} correlations of {_pair_name(pair)} on {data_set} are "
                "undefined (NaN) and left out: importances that are all equal correlate with nothing.",
                DataWarning,
            )
        checked[pair] = defined
    return checked

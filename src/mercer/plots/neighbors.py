"""A row beside its nearest neighbors in the metric of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain import neighbors
from mercer.explain.inputs import check_rows
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, tidy


class NeighborsDisplay:
    """The values of a row and of its neighbors in each column, in standard deviations of the column.

    Columns are in the order of their importance to the model. Under a learned metric, neighbors are close to the row in
    the first columns, and may be far from it in the last columns, which do not matter.

    Parameters
    ----------
    values : array-like of shape (1 + k, d)
        The standardized values of the row, followed by those of its neighbors.
    names : sequence of str
        The names of the d columns, in the order in which they are drawn.
    labels : sequence of str
        The names of the row and of its neighbors.
    name : str, optional
        The name of the model, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, values: Any, names: Sequence[str], labels: Sequence[str], name: str | None = None) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        if self.values.ndim != 2 or len(self.values) < 2:
            raise invalid_parameter("values", self.values.shape, "of shape (1 + k, d): a row and its neighbors")
        self.names, self.labels, self.name = list(names), list(labels), name
        if self.values.shape != (len(self.labels), len(self.names)):
            raise invalid_parameter("values", self.values.shape, f"({len(self.labels)}, {len(self.names)})")

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, row: int, *, n_rows: int = 5, name: str | None = None, ax: Any = None
    ) -> "NeighborsDisplay":
        """Draw the row of a table of numbers at position `row`, beside its nearest neighbors by the model."""
        found = neighbors(model, X, row, n_rows)
        rows, names = check_rows(model, X, None)
        numbers = np.asarray(rows, dtype=np.float64)
        spread = numbers.std(axis=0)
        standardized = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        weights = getattr(model, "feature_importances_", None)
        order = np.arange(len(names)) if weights is None else np.argsort(-np.asarray(weights), kind="stable")
        near = [f"row {k}, {rank + 1}. by plain distance" for k, rank in zip(found.rows, found.plain, strict=True)]
        values = standardized[[row, *found.rows]][:, order]
        title = type(model).__name__ if name is None else name
        return cls(values, [names[k] for k in order], [f"row {row}", *near], title).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_columns: int = 12) -> "NeighborsDisplay":
        """Draw onto `ax`, or onto a new figure. Only the first `max_columns` columns are drawn."""
        d = min(check_count("max_columns", max_columns), len(self.names))
        self.ax_ = ax = axes_or_new(ax, figsize=(1.6 + 0.55 * max(d, 5), 4.0))
        self.figure_ = ax.figure
        places = np.arange(d)
        for k in range(len(self.values) - 1, 0, -1):
            color = CATEGORIES[(k - 1) % 6]
            ax.plot(places, self.values[k, :d], "o-", color=color, linewidth=1.1, markersize=3.5, label=self.labels[k])
        ax.plot(places, self.values[0, :d], "o-", color="black", linewidth=2.4, markersize=5, label=self.labels[0])
        ax.set_xticks(places, [shorten(name, 16) for name in self.names[:d]], rotation=90, fontsize=8)
        ax.set_ylabel("standard deviations from the mean")
        title = "" if self.name is None else shorten(self.name, 36)
        counted = f"{d} of {len(self.names)} columns" if d < len(self.names) else ""
        ax.set_title("\n".join(part for part in (title, counted) if part), fontsize=10)
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        tidy(ax)
        return self

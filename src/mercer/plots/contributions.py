"""The sum behind a prediction as a waterfall chart: the intercept, and the contributions of training rows."""

from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain import Expansion, expansion
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, tidy

UP, DOWN = CATEGORIES[0], CATEGORIES[5]


class ContributionsDisplay:
    """A bar for each of the training rows with the largest contributions; it begins where the bar above it ends.

    Parameters
    ----------
    contributions : array-like of shape (m,)
        The number that each training row or landmark adds to the prediction.
    intercept : float
        The number at which the sum begins.
    rows : array-like of shape (m,), optional
        Names or numbers of the rows; 0, 1, ... by default.
    name : str, optional
        The name of the predicted number, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, contributions: Any, intercept: float = 0.0, rows: Any = None, name: str = "answer") -> None:
        self.contributions = np.asarray(contributions, dtype=np.float64)
        if self.contributions.ndim != 1 or not len(self.contributions):
            raise invalid_parameter("contributions", self.contributions.shape, "of shape (m,): one answer is drawn")
        self.intercept = float(intercept)
        self.rows = np.arange(len(self.contributions)) if rows is None else np.asarray(rows)
        if self.rows.shape != self.contributions.shape:
            raise invalid_parameter(
                "rows", self.rows.shape, f"of the shape of contributions, {len(self.contributions)}"
            )
        self.name = name

    @classmethod
    def from_expansion(
        cls, found: Expansion, row: int = 0, output: int = 0, *, ax: Any = None, n_rows: int = 10
    ) -> "ContributionsDisplay":
        """Draw one row and one output of a result of `mercer.explain.expansion`."""
        if not isinstance(found, Expansion):
            raise invalid_parameter("found", found, "what mercer.explain.expansion returns")
        check_count("row", row, at_least=0, at_most=len(found.contributions) - 1, why="the number of rows - 1")
        check_count("output", output, at_least=0, at_most=len(found.outputs) - 1, why="the number of outputs - 1")
        name = found.meaning if len(found.outputs) == 1 else f"{found.meaning} of {found.outputs[output]}"
        own = found.contributions[row, :, output]
        return cls(own, found.intercept[output], found.rows, name).plot(ax=ax, n_rows=n_rows)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, row: int = 0, output: int = 0, *, ax: Any = None, n_rows: int = 10
    ) -> "ContributionsDisplay":
        """Draw the prediction of a model for one of the rows X."""
        return cls.from_expansion(expansion(model, X), row, output, ax=ax, n_rows=n_rows)

    def plot(self, ax: Any = None, *, n_rows: int = 10) -> "ContributionsDisplay":
        """Draw onto `ax`, or onto a new figure. All rows but the first `n_rows` share one bar."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        drawn, rest = np.split(order, [check_count("n_rows", n_rows)])
        steps = [*self.contributions[drawn], *([self.contributions[rest].sum()] if len(rest) else [])]
        names = [f"row {self.rows[k]}" if np.issubdtype(self.rows.dtype, np.integer) else self.rows[k] for k in drawn]
        names = ["begins at", *names, *([f"{len(rest)} others"] if len(rest) else []), "sum"]
        ends = self.intercept + np.cumsum([0.0, *steps])
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 1.2 + 0.27 * len(names)))
        self.figure_ = ax.figure
        places = np.arange(1, len(steps) + 1)
        colors = [UP if step >= 0 else DOWN for step in steps]
        ax.barh(places, steps, left=ends[:-1], color=colors, height=0.66, zorder=3)
        for place, end in enumerate(ends):  # from where one bar ends to where the next begins
            ax.plot([end, end], [place - 0.33, place + 1.33], color="0.55", linewidth=0.8, zorder=2)
        ax.plot([ends[0], ends[-1]], [0, len(names) - 1], "D", color="black", markersize=5, linestyle="none", zorder=4)
        low, high = min(ends), max(ends)
        room = 0.05 * ((high - low) or 1.0)
        ax.set_xlim(low - room, high + room)
        ax.set_yticks(np.arange(len(names)), [shorten(name) for name in names], fontsize=9)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=4)
        ax.set_xlabel(shorten(self.name, 36))
        ax.set_title(f"begins at {self.intercept:.4g}, ends at {ends[-1]:.4g}", fontsize=10)
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        return self

"""Predictions with their intervals, as a curve along one input, or against the targets if there are several inputs."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers, check_gaussian, check_level, interval_halfwidth
from mercer.plots.labels import shorten
from mercer.plots.reliability import predict_mean_and_std
from mercer.plots.style import CATEGORIES, axes_or_new, legend_below, percent, tidy

# The number of points of the curve along one input.
GRID = 400
INSIDE, OUTSIDE = CATEGORIES[0], CATEGORIES[5]


class Curve(NamedTuple):
    """Predictions along one input, with x ascending; all arrays have the shape (n_points,)."""

    x: np.ndarray
    mean: np.ndarray
    std: np.ndarray


class IntervalDisplay:
    """Gaussian predictions with their central intervals; targets outside of their interval have another color.

    For one input, the figure has the mean as a curve, bands of 50 % and of `level` around it, and the targets as
    points. For several inputs, it has the prediction of each row against its target, with a vertical bar for the
    interval. The bar crosses the diagonal if the interval contains the target.

    Parameters
    ----------
    y_true, mean, std : array-like of shape (n,)
        The targets, and the means and standard deviations of their predictions. The standard deviation includes the
        noise.
    x : array-like of shape (n,), optional
        The values of the only input.
    curve : Curve, optional
        Predictions for further values of the input. By default, the predictions of the rows make the curve.
    name : str, optional
        The name of the model, for the title.
    x_name : str, default="x"
        The name of the input.
    interval : array-like of shape (n, 2), optional
        The ends of intervals that are not Gaussian, such as those of `predict_interval`. They cannot be drawn along an
        input. The `level` of a plot must then be theirs.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        y_true: Any,
        mean: Any,
        std: Any,
        x: Any = None,
        curve: Curve | None = None,
        name: str | None = None,
        x_name: str = "x",
        interval: Any = None,
    ) -> None:
        self.y_true, self.mean, self.std = check_gaussian(y_true, mean, std, "y_true")
        if self.y_true.ndim != 1:
            raise invalid_parameter("y_true", self.y_true.shape, "of shape (n,): one target is drawn")
        self.x = None if x is None else as_numbers("x", x)
        if self.x is not None and (self.x.shape != self.y_true.shape or not np.all(np.isfinite(self.x))):
            raise invalid_parameter("x", x, f"finite numbers of the shape of y_true, {self.y_true.shape}")
        if self.x is None and curve is not None:
            raise invalid_parameter("curve", curve, "None where x is not given")
        if self.x is not None and curve is None:
            order = np.argsort(self.x, kind="stable")
            curve = Curve(self.x[order], self.mean[order], self.std[order])
        self.curve = curve
        self.name = name
        self.x_name = x_name
        self.interval = None if interval is None else as_numbers("interval", interval)
        if self.interval is not None and (x is not None or self.interval.shape != (len(self.y_true), 2)):
            allowed = f"None where x is given, or the two ends for each of {len(self.y_true)} rows"
            raise invalid_parameter("interval", self.interval.shape, allowed)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, level: float = 0.9, name: str | None = None, ax: Any = None
    ) -> "IntervalDisplay":
        """Draw `model.predict(X, return_std=True)` of a fitted model, as a curve if X has a single column."""
        name = type(model).__name__ if name is None else name
        mean, std = predict_mean_and_std(model, X)
        if np.ndim(X) != 2 or np.shape(X)[1] != 1:
            return cls(y, mean, std, name=name).plot(ax=ax, level=level)
        x = np.asarray(X, dtype=np.float64)[:, 0]
        margin = 0.05 * np.ptp(x)
        grid = np.linspace(x.min() - margin, x.max() + margin, GRID)
        # A model fitted to a data frame needs the name of its column.
        x_name = str(X.columns[0]) if hasattr(X, "columns") else "x"
        column = type(X)({X.columns[0]: grid}) if hasattr(X, "columns") else grid[:, None]
        curve = Curve(grid, *predict_mean_and_std(model, column))
        return cls(y, mean, std, x, curve, name, x_name).plot(ax=ax, level=level)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        mean: Any,
        std: Any,
        *,
        x: Any = None,
        level: float = 0.9,
        name: str | None = None,
        x_name: str = "x",
        interval: Any = None,
        ax: Any = None,
    ) -> "IntervalDisplay":
        """Draw predictions, as a curve along the input x if it is given."""
        return cls(y_true, mean, std, x, name=name, x_name=x_name, interval=interval).plot(ax=ax, level=level)

    def ends(self, level: float = 0.9) -> np.ndarray:
        """Return the lower and the upper end of the interval of each row, of shape (n, 2)."""
        if self.interval is not None:
            return self.interval
        half = interval_halfwidth(level) * self.std
        return np.column_stack([self.mean - half, self.mean + half])

    def outside(self, level: float = 0.9) -> np.ndarray:
        """Return for each row whether its target is outside the interval, as a boolean array of shape (n,)."""
        lower, upper = self.ends(level).T
        return (self.y_true < lower) | (self.y_true > upper)

    def plot(
        self, ax: Any = None, *, level: float = 0.9, max_rows: int = 200, random_state: Any = 0
    ) -> "IntervalDisplay":
        """Draw onto `ax`, or onto a new figure.

        Against the targets, at most `max_rows` rows are drawn, which are chosen at random. The title counts the rows
        outside the interval among all rows.
        """
        check_level(level)
        check_count("max_rows", max_rows)
        self.ax_ = ax = axes_or_new(ax, figsize=(5.6, 4.6))
        self.figure_ = ax.figure
        outside = self.outside(level)
        n = len(outside)
        counted = f"{outside.sum()} of {n} rows outside the {percent(level)} interval ({outside.mean():.1%})"
        if self.curve is not None and self.x is not None:
            self._draw_curve(ax, self.curve, self.x, outside, level)
            drawn = ""
        else:
            rows = np.arange(n)
            if n > max_rows:
                rows = np.sort(check_random_state(random_state).choice(n, max_rows, replace=False))
            self._draw_rows(ax, rows, outside, level)
            drawn = f"\n{len(rows)} of {n} rows drawn" if len(rows) < n else ""
        title = "" if self.name is None else f"{shorten(self.name, 50)}\n"
        ax.set_title(f"{title}{counted}{drawn}", fontsize=10)
        ax.locator_params(axis="x", nbins=5)  # so that numbers with many digits do not overlap
        legend_below(ax)
        tidy(ax)
        return self

    def _draw_curve(self, ax: Any, curve: Curve, x: np.ndarray, outside: np.ndarray, level: float) -> None:
        for share, strength in zip(sorted({0.5, level}, reverse=True), (0.18, 0.35), strict=False):
            reach = interval_halfwidth(share) * curve.std
            ax.fill_between(
                curve.x,
                curve.mean - reach,
                curve.mean + reach,
                color=INSIDE,
                alpha=strength,
                linewidth=0,
                label=f"{percent(share)} interval",
            )
        ax.plot(curve.x, curve.mean, color=INSIDE, label="mean")
        size = float(np.clip(6000 / len(x), 3.0, 18.0))
        ax.scatter(x[~outside], self.y_true[~outside], s=size, color="0.2", linewidths=0, label="inside", zorder=3)
        ax.scatter(
            x[outside],
            self.y_true[outside],
            s=1.6 * size,
            color=OUTSIDE,
            marker="D",
            linewidths=0,
            label="outside",
            zorder=4,
        )
        ax.set_xlabel(shorten(self.x_name, 50))
        ax.set_ylabel("target")

    def _draw_rows(self, ax: Any, rows: np.ndarray, outside: np.ndarray, level: float) -> None:
        lower, upper = self.ends(level).T
        # The mean of a skewed distribution may lie outside its interval.
        reach = np.maximum([self.mean - lower, upper - self.mean], 0.0)
        for marked, color, marker, label in ((False, INSIDE, "o", "holds"), (True, OUTSIDE, "D", "misses")):
            kept = rows[outside[rows] == marked]
            ax.errorbar(
                self.y_true[kept],
                self.mean[kept],
                yerr=reach[:, kept],
                fmt=marker,
                color=color,
                markersize=3,
                elinewidth=0.8,
                alpha=0.75,
                zorder=2 + marked,
                label=f"{percent(level)} interval {label} the target",
            )
        ends = [self.y_true[rows].min(), self.y_true[rows].max()]
        ax.plot(ends, ends, color="0.3", linewidth=0.9, linestyle="--", zorder=1)
        ax.set_xlabel("observed target")
        ax.set_ylabel("predicted target")

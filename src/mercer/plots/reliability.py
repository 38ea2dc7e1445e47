"""The reliability of predicted intervals: the share of targets that they contain, against their nominal level."""

from typing import Any

import numpy as np
from scipy.stats import binom

from mercer.exceptions import invalid_parameter
from mercer.metrics import check_gaussian, check_level, coverage
from mercer.plots.labels import shorten
from mercer.plots.style import axes_or_new, percent, percent_axes, series_style, tidy

# The nominal levels of the intervals whose coverage is drawn.
LEVELS = np.linspace(0.05, 0.95, 19)
# The probability, at each level, that the coverage of a model with correct intervals is inside the band.
BAND = 0.95
# The legend entries of the diagonal and of the band; the number of rows follows the latter.
IDEAL, BAND_LABEL = "ideal", f"{percent(BAND)} range for "


def predict_mean_and_std(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `model.predict(X, return_std=True)`; raise if the model cannot predict standard deviations."""
    allowed = "a fitted regressor whose predict(X, return_std=True) gives mean and std"
    if not hasattr(model, "predict"):
        raise invalid_parameter("model", model, allowed)
    try:
        predicted = model.predict(X, return_std=True)
    except TypeError as error:
        raise invalid_parameter("model", model, allowed) from error
    if not isinstance(predicted, tuple) or len(predicted) != 2:
        raise invalid_parameter("model", model, allowed)
    return np.asarray(predicted[0]), np.asarray(predicted[1])


class ReliabilityDisplay:
    """The observed coverage of central intervals against their nominal level.

    A model with correct intervals lies near the diagonal: at each level it is inside the gray band with a probability
    of 95 %. The band is the binomial spread of the share of n independent rows. A curve below it means that intervals
    are too narrow, and one above it that they are too wide. Several models can be drawn onto one `ax`, with their
    names.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        The nominal levels.
    observed : ndarray of shape (n_levels,)
        The share of rows inside the interval of each level.
    n_rows : int
        The number of rows from which the shares were computed.
    coverage_90 : float
        The share of rows inside the 90 % interval, for the legend.
    name : str, optional
        The name of the model, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self, levels: np.ndarray, observed: np.ndarray, n_rows: int, coverage_90: float, name: str | None = None
    ) -> None:
        self.levels = levels
        self.observed = observed
        self.n_rows = n_rows
        self.coverage_90 = coverage_90
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> "ReliabilityDisplay":
        """Draw the reliability of `model.predict(X, return_std=True)` on rows X that the model has not seen."""
        mean, std = predict_mean_and_std(model, X)
        return cls.from_predictions(y, mean, std, name=type(model).__name__ if name is None else name, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, mean: Any, std: Any, *, levels: Any = LEVELS, name: str | None = None, ax: Any = None
    ) -> "ReliabilityDisplay":
        """Draw the reliability of Gaussian predictions, whose standard deviations include the noise."""
        y, mean, std = check_gaussian(y_true, mean, std, "y_true")
        levels = np.sort([check_level(level) for level in np.atleast_1d(levels)])
        observed = np.array([coverage(y, mean, std, level) for level in levels])
        return cls(levels, observed, y.size, coverage(y, mean, std, 0.9), name).plot(ax=ax)

    def plot(self, ax: Any = None) -> "ReliabilityDisplay":
        """Draw onto `ax`, in addition to models that are already there, or onto a new figure."""
        self.ax_ = ax = axes_or_new(ax, figsize=(6.6, 4.2))
        self.figure_ = ax.figure
        drawn = ax.get_legend_handles_labels()[1]
        if IDEAL not in drawn:
            ax.plot([0, 1], [0, 1], color="0.4", linewidth=0.9, linestyle="--", label=IDEAL, zorder=1)
        # Models on the same number of rows share one band.
        band = f"{BAND_LABEL}{self.n_rows} rows"
        if band not in drawn:
            grid = np.linspace(0.005, 0.995, 199)
            low, high = (binom.ppf(q, self.n_rows, grid) / self.n_rows for q in ((1 - BAND) / 2, (1 + BAND) / 2))
            ax.fill_between(grid, low, high, color="0.5", alpha=0.22, linewidth=0, label=band, zorder=0)
        models = sum(line.get_gid() == "model" for line in ax.lines)
        label = f"{self.coverage_90:.1%}" + ("" if self.name is None else f"  {shorten(self.name, 24)}")
        (self.line_,) = ax.plot(
            self.levels,
            self.observed,
            gid="model",
            label=label,
            linewidth=1.3,
            markersize=3.5,
            clip_on=False,
            **series_style(models),
        )
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        percent_axes(ax.xaxis, ax.yaxis)
        ax.set_xlabel("nominal level of the interval")
        ax.set_ylabel("rows inside the interval")
        tidy(ax)
        # The legend is beside the axes, since curves may fill both corners. The models come first in it.
        entries = sorted(
            zip(*ax.get_legend_handles_labels(), strict=True),
            key=lambda entry: entry[1].startswith((IDEAL, BAND_LABEL)),
        )
        handles, labels = zip(*entries, strict=True)
        ax.legend(
            handles,
            labels,
            title="inside the 90% interval",
            title_fontsize=8,
            alignment="left",
            fontsize=8,
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )
        return self

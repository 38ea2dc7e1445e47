"""Figures of errors: ROC curves, precision against recall, reliability, residuals, and coverage of intervals."""

from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.metrics import precision_recall_curve, roc_curve

from mercer.app.report.evidence import Evidence
from mercer.app.report.figures import figure
from mercer.app.report.markup import Html, paragraph
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, legend_below, percent_axes, series_style, tidy

# The most classes whose curves are drawn in one figure, the fewest rows of a bin, and the most bins.
MOST_CURVES, ROWS_A_BIN, MOST_BINS = 6, 10, 8
LEVEL = 0.9
SIDE = (4.8, 4.0)


class Drawn:
    """A figure as `report.figures.figure` takes it, in the field `figure_`."""

    def __init__(self, ax: Any) -> None:
        self.figure_ = ax.figure


def curves_figures(judged: Evidence) -> list[Html]:
    """Return the ROC curve and precision against recall: for the rarer of two classes, or for each of several."""
    shown = _classes_of_curves(judged)
    if not shown:
        return [paragraph("All of these rows are of one class, so there is no ROC curve.")]
    names = [shorten(judged.classes[k], 24) for k in shown]

    def draw_roc() -> Drawn:
        ax = axes_or_new(None, figsize=SIDE)
        for i, (k, name) in enumerate(zip(shown, names, strict=True)):
            wrong, right, _ = roc_curve(judged.true == k, judged.probabilities[:, k])
            ax.plot(wrong, right, label=name, linewidth=1.5, **(series_style(i) | {"marker": ""}))
        ax.plot([0, 1], [0, 1], color="0.4", linewidth=0.9, linestyle="--", label="a guess")
        return _finished(ax, "rows of other classes that are taken for the class", "rows of the class that are found")

    def draw_precision() -> Drawn:
        ax = axes_or_new(None, figsize=SIDE)
        for i, (k, name) in enumerate(zip(shown, names, strict=True)):
            precise, found, _ = precision_recall_curve(judged.true == k, judged.probabilities[:, k])
            ax.plot(found, precise, label=name, linewidth=1.5, **(series_style(i) | {"marker": ""}))
        share = float(np.mean([np.mean(judged.true == k) for k in shown]))
        ax.axhline(share, color="0.4", linewidth=0.9, linestyle="--", label="a guess")
        return _finished(ax, "rows of the class that are found (recall)", "rows named so that are right (precision)")

    which = f"the class {names[0]}" if len(shown) == 1 else "each class"
    return [
        figure(
            draw_roc,
            f"ROC curve of {which}: the further it is above the dashed line, the better the class is told from others.",
        ),
        figure(
            draw_precision,
            f"Precision against recall of {which}: what share of the rows named so is right, as more are found.",
        ),
    ]


def class_reliability_figure(judged: Evidence) -> Html:
    """Return a figure of how often answers are right against the probability that the model gave them."""
    sure = judged.probabilities.max(axis=1).clip(0.0, 1.0)
    right = (judged.true == judged.predicted).astype(float)
    bins = np.array_split(np.argsort(sure, kind="stable"), _n_bins(len(sure)))

    def draw() -> Drawn:
        ax = axes_or_new(None, figsize=SIDE)
        said, share = (np.array([values[rows].mean() for rows in bins]) for values in (sure, right))
        low, high = _ends(np.array([right[rows].sum() for rows in bins]), np.array([len(rows) for rows in bins]))
        lowest = min(1.0 / max(len(judged.classes), 2), float(said.min()))
        ax.plot([lowest, 1], [lowest, 1], color="0.4", linewidth=0.9, linestyle="--", label="ideal")
        ax.errorbar(said, share, yerr=[share - low, high - share], fmt="o", color=CATEGORIES[0], markersize=4.5)
        ax.set_xlim(lowest - 0.02, 1.02)
        ax.set_ylim(min(float(low.min()), lowest) - 0.02, 1.02)
        return _finished(ax, "probability of the answer", "answers that are right", legend=False)

    return figure(
        draw,
        "How often answers are right, against the probability that the model gave them. Each point is a group of "
        "equally many rows, with a 90% interval. Below the line the model is too sure, above the line it is not sure "
        "enough; an interval that reaches the line shows neither.",
    )


def residuals_figure(judged: Evidence) -> Html:
    """Return a figure of errors against predictions. A pattern in it is something that the model has missed."""

    def draw() -> Drawn:
        ax = axes_or_new(None, figsize=(5.4, 3.6))
        ax.axhline(0.0, color="0.4", linewidth=0.9, linestyle="--")
        ax.scatter(judged.predicted, judged.true - judged.predicted, s=9, alpha=0.6, color=CATEGORIES[0], linewidths=0)
        return _finished(ax, "predicted", "true minus predicted", legend=False, shares=False)

    return figure(
        draw,
        "Errors against predictions. They should show no pattern: a bend is something that the model has missed, and a "
        "funnel means that large predictions are less certain.",
    )


def coverage_figure(judged: Evidence) -> Html:
    """Return a figure of the share of targets that the 90 % intervals hold, for small and for large predictions."""
    inside = ((judged.lower <= judged.true) & (judged.true <= judged.upper)).astype(float)
    bins = np.array_split(np.argsort(judged.predicted, kind="stable"), min(_n_bins(len(inside)), 5))

    def draw() -> Drawn:
        ax = axes_or_new(None, figsize=(5.4, 3.4))
        middle, share = (np.array([values[rows].mean() for rows in bins]) for values in (judged.predicted, inside))
        low, high = _ends(np.array([inside[rows].sum() for rows in bins]), np.array([len(rows) for rows in bins]))
        ax.axhline(LEVEL, color="0.4", linewidth=0.9, linestyle="--")
        ax.errorbar(middle, share, yerr=[share - low, high - share], fmt="o", color=CATEGORIES[0], markersize=4.5)
        ax.set_ylim(min(0.5, float(low.min()) - 0.02), 1.02)
        percent_axes(ax.yaxis)
        return _finished(ax, "predicted", "targets inside the interval", legend=False, shares=False)

    return figure(
        draw,
        "The share of targets that the 90% intervals hold, from small to large predictions, each point with a 90% "
        "interval of its own. On the dashed line the intervals are right for predictions of that size.",
    )


def _classes_of_curves(judged: Evidence) -> list[int]:
    counts = np.array([np.sum(judged.true == k) for k in range(len(judged.classes))])
    present = [k for k in np.argsort(-counts, kind="stable") if 0 < counts[k] < len(judged.true)]
    return [int(k) for k in (present[-1:] if len(judged.classes) == 2 else present[:MOST_CURVES])]


def _n_bins(n: int) -> int:
    return int(np.clip(n // ROWS_A_BIN, 1, MOST_BINS))


def _ends(hits: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the exact 90 % interval of a share (Clopper and Pearson)."""
    with np.errstate(invalid="ignore"):
        low, high = beta.ppf((1 - LEVEL) / 2, hits, n - hits + 1), beta.ppf((1 + LEVEL) / 2, hits + 1, n - hits)
    return np.where(hits == 0, 0.0, low), np.where(hits == n, 1.0, high)


def _finished(ax: Any, x: str, y: str, *, legend: bool = True, shares: bool = True) -> Drawn:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if shares:
        percent_axes(ax.xaxis, ax.yaxis)
    tidy(ax)
    if legend:
        legend_below(ax)
    return Drawn(ax)

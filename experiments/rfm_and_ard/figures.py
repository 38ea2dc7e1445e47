"""Figures 1 to 3 of the paper, and the metric by the number of rows; run `python -m <this module> FOLDER [ONLY]`.

All are drawn from existing results, except Figure 3, which fits models.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments import MissingResult
from experiments.figures import recorded, write_figures
from mercer.plots import CorrelationDisplay, MetricDisplay, ScoresDisplay
from mercer.plots.style import CATEGORIES, axes_or_new, tidy

from .cases import CURVE, CURVE_ROWS, CURVE_SIZES, MOST_ROWS, SEVEN, TOY_COLUMNS, TOY_ROWS, on, toy
from .comparisons import FIGURE_1, FIGURE_2, OURS, importances
from .contestants import PRESETS, fitted
from .data import load_split
from .toy import toy_rows

# The number of rows on which Figure 3 fits models.
FIGURE_3_ROWS = 1000


def scores(measure: str) -> Any:
    """Draw Figure 1: normalized scores of the paper's methods and of ours, on the splits that all of them have."""
    results = recorded("rfm_and_ard")
    table = {}
    for name in (OURS, "GP-RFM-diag-Laplace", *FIGURE_1):
        try:
            table[name] = {data: results.values(on(data, name), measure) for data in SEVEN}
        except MissingResult:
            print(f"{name} is left out: it was not run on all seven sets")
    splits = {data: min(len(scores[data]) for scores in table.values()) for data in SEVEN}
    shared = {name: {data: scores[data][: splits[data]] for data in SEVEN} for name, scores in table.items()}
    return ScoresDisplay.from_scores(shared, score_name=measure.upper()).figure_


def metric_of(name: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Return the learned metric of one of the paper's GPs."""
    with threadpool_limits(1):
        return fitted(PRESETS[name], X, y, 0).metric_


def split(data: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, _, _ = load_split(data, number, duplicates=True, most_rows=FIGURE_3_ROWS)
    return X, y


def agreement(kind: str) -> Any:
    """Draw Figure 2: the correlations of the diagonals, set by set."""
    results, table = recorded("rfm_and_ard"), {}
    for data in SEVEN:
        try:
            table[data] = {label: importances(results, data, label) for label in FIGURE_2}
        except MissingResult:
            print(f"{data} is left out: its metrics were not learned")
    return CorrelationDisplay.from_importances(table, kind=kind).figure_


def learning_curves(data: str) -> Any:
    """Draw the RMSE by the number of rows, for the three ways to learn a metric."""
    results, ax = recorded("rfm_and_ard"), axes_or_new(None, figsize=(5.4, 3.6))
    sizes = (*CURVE_SIZES, MOST_ROWS)
    for name, color in zip(CURVE, CATEGORIES, strict=False):
        found = [results.values(on(data, name, n), "rmse") for n in sizes]
        ax.fill_between(sizes, [min(v) for v in found], [max(v) for v in found], color=color, alpha=0.2)
        ax.plot(sizes, [np.mean(v) for v in found], "o-", color=color, label=name)
    ax.set(xscale="log", xlabel="training rows", ylabel="RMSE on test rows", title=data)
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False, title="mean, least and largest of the splits")
    tidy(ax)
    return ax.figure


def metrics(X: np.ndarray, y: np.ndarray) -> Any:
    """Draw Figure 3: the three metrics side by side."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(FIGURE_2), figsize=(4.6 * len(FIGURE_2), 3.9), layout="constrained")
    for ax, (label, name) in zip(axes, FIGURE_2.items(), strict=True):
        MetricDisplay(metric_of(name, X, y).matrix(X.shape[1])).plot(ax, title=label)
    return figure


def curve() -> Any:
    """Draw the correlation of RFM's metric with the true block by the number of rows."""
    results = recorded("rfm_and_ard")
    ax = axes_or_new(None, figsize=(5.4, 3.6))
    for d, color in zip(TOY_COLUMNS, (CATEGORIES[0], CATEGORIES[1]), strict=True):
        found = []
        for n in CURVE_ROWS:
            try:
                found.append((n, results.values(toy("square", "RFM", d, n), "correlation")))
            except MissingResult:
                print(f"d = {d}, n = {n} is left out: it was not run")
        rows = [n for n, _ in found]
        ax.fill_between(rows, [min(v) for _, v in found], [max(v) for _, v in found], color=color, alpha=0.2)
        ax.plot(rows, [np.mean(v) for _, v in found], "o-", color=color, label=f"d = {d}")
    ax.axhline(0.98, color="0.6", linewidth=0.8, linestyle="--")
    ax.set(xscale="log", xlabel="training rows", ylabel="correlation with the true block")
    ax.set_xticks(CURVE_ROWS, [str(n) for n in CURVE_ROWS])
    ax.minorticks_off()
    ax.legend(frameon=False, title="mean, least and largest of the seeds")
    tidy(ax)
    return ax.figure


FIGURES = {
    "figure-1-rmse": partial(scores, "rmse"),
    "figure-1-nll": partial(scores, "nll"),
    "figure-2-pearson": partial(agreement, "pearson"),
    "figure-2-spearman": partial(agreement, "spearman"),
    "learning-curve-kin8nm": partial(learning_curves, "kin8nm"),
    "figure-3-toy": lambda: metrics(*toy_rows("square", TOY_ROWS, 20, 0)),
    "figure-3-kin8nm": lambda: metrics(*split("kin8nm", 0)),
    "toy-curve": curve,
}


if __name__ == "__main__":
    write_figures(FIGURES, sys.argv[1:])

"""Figures 1 to 3 of the paper, and how the metric is found as rows are added: `python -m <this module> FOLDER [ONLY]`.

Figure 1 and the curve are drawn from results that are there; the others fit what they show.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mercer
from experiments import MissingResult
from experiments.figures import recorded, write_figures
from mercer.plots import CorrelationDisplay, MetricDisplay, ScoresDisplay
from mercer.plots.style import CATEGORIES, axes_or_new, tidy

from .cases import CURVE_ROWS, MOST_ROWS, SEVEN, TOY_COLUMNS, TOY_ROWS, on, toy
from .comparisons import FIGURE_1, OURS
from .contestants import PAPER
from .data import load_split
from .toy import toy_rows

# Figure 2 has the metrics of these, on so many splits of each set; Figure 3 those on the first.
LEARNED = {"RFM": "GP-RFM-Laplace", "RFM-diag": "GP-RFM-diag-Laplace", "ARD": "GP-ARD-Laplace"}
SPLITS = 5


def scores(measure: str) -> Any:
    """Figure 1: normalised scores of the paper's methods and of ours, of those that were run on all seven sets."""
    results = recorded("rfm_and_ard")
    table = {}
    for name in (OURS, "GP-RFM-Laplace", "GP-RFM-Laplace (70/30)", "GP-RFM-diag-Laplace", *FIGURE_1):
        try:
            table[name] = {data: results.values(on(data, name), measure) for data in SEVEN}
        except MissingResult:
            print(f"{name} is left out: it was not run on all seven sets")
    return ScoresDisplay.from_scores(table, score_name=measure.upper()).figure_


def metric_of(name: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Return the learned metric of one of the paper's GPs."""
    with threadpool_limits(1):
        model = getattr(mercer, PAPER[name]["estimator"])(**PAPER[name]["options"], random_state=0).fit(X, y)
    return model.metric_


def split(data: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, _, _ = load_split(data, number, duplicates=True, most_rows=MOST_ROWS)
    return X, y


def correlations() -> Any:
    """Figure 2: how far the diagonals agree, set by set."""
    importances = {
        data: {
            label: [metric_of(name, *split(data, number)).importances(None) for number in range(SPLITS)]
            for label, name in LEARNED.items()
        }
        for data in SEVEN
    }
    return CorrelationDisplay.from_importances(importances).figure_


def metrics(X: np.ndarray, y: np.ndarray) -> Any:
    """Figure 3: the three metrics beside each other."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(LEARNED), figsize=(4.6 * len(LEARNED), 3.9), layout="constrained")
    for ax, (label, name) in zip(axes, LEARNED.items(), strict=True):
        MetricDisplay(metric_of(name, X, y).matrix(X.shape[1])).plot(ax, title=label)
    return figure


def curve() -> Any:
    """The correlation of RFM's metric with the true block, as rows are added."""
    results = recorded("rfm_and_ard")
    ax = axes_or_new(None, figsize=(5.4, 3.6))
    for d, colour in zip(TOY_COLUMNS, (CATEGORIES[0], CATEGORIES[1]), strict=True):
        found = []
        for n in CURVE_ROWS:
            try:
                found.append((n, results.values(toy("square", "RFM", d, n), "correlation")))
            except MissingResult:
                print(f"d = {d}, n = {n} is left out: it was not run")
        rows = [n for n, _ in found]
        ax.fill_between(rows, [min(v) for _, v in found], [max(v) for _, v in found], color=colour, alpha=0.2)
        ax.plot(rows, [np.mean(v) for _, v in found], "o-", color=colour, label=f"d = {d}")
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
    "figure-2": correlations,
    "figure-3-toy": lambda: metrics(*toy_rows("square", TOY_ROWS, 20, 0)),
    "figure-3-kin8nm": lambda: metrics(*split("kin8nm", 0)),
    "toy-curve": curve,
}


if __name__ == "__main__":
    write_figures(FIGURES, sys.argv[1:])

"""Figures 1 and 2 of the paper, and affinity and spectrum of ten faces; run `python -m <this module> FOLDER`."""

import sys
from typing import Any

from experiments.figures import write_figures
from mercer import SubspaceClustering, datasets
from mercer.plots import AffinityDisplay, EigengapDisplay, EvolutionDisplay

from .toy import TOYS, toy_iterates, toy_name

# The iterations that each figure shows. The first figure of the paper has eight iterations, the second five.
SHOWN = {"quadratic": (0, 2, 5, 8), "gaussian": (0, 2, 5, 8)}


def evolution(name: str) -> Any:
    """Draw Figure 1 (quadratic) or 2 (Gaussian): rows, kernel matrix and affinity over the iterations."""
    settings = TOYS[toy_name(name, "as printed", "line 6")]
    iterates, labels = toy_iterates(settings, 0)
    shown = [iterates[t] for t in SHOWN[name]]
    parts = [[iterate[part] for iterate in shown] for part in ("points", "kernel", "affinity")]
    return EvolutionDisplay(*parts, labels, [f"iteration {t}" for t in SHOWN[name]]).plot().figure_


def faces(display: Any) -> Any:
    """Draw a display of the first ten subjects, sorted by subject, clustered with the default settings."""
    data = datasets.load("yaleb")
    rows = data.y < 10
    model = SubspaceClustering(10, random_state=0).fit(data.X[rows].reshape(rows.sum(), -1))
    if display is AffinityDisplay:
        return display.from_estimator(model, data.y[rows]).figure_
    return display.from_estimator(model).figure_


FIGURES = {
    "figure-1": lambda: evolution("quadratic"),
    "figure-2": lambda: evolution("gaussian"),
    "affinity-of-faces": lambda: faces(AffinityDisplay),
    "spectrum-of-faces": lambda: faces(EigengapDisplay),
}


if __name__ == "__main__":
    write_figures(FIGURES, sys.argv[1:])

"""Accuracy by the number of landmarks, for several numbers of rows.

Run `python -m experiments.krepes_as_printed.figures FOLDER`.
"""

import sys
from typing import Any

from experiments.figures import recorded, write_figures
from mercer.plots.style import CATEGORIES, axes_or_new, tidy

from .cases import LAW_LANDMARKS, LAW_ROWS, law


def landmarks_and_rows() -> Any:
    """Draw the accuracies; the number of landmarks at which a curve levels off hardly depends on the number of rows."""
    results, ax = recorded("krepes_as_printed"), axes_or_new(None, figsize=(5.4, 3.6))
    for n, color in zip(LAW_ROWS, CATEGORIES, strict=False):
        accuracies = [results.mean(law(n, m), "accuracy") for m in LAW_LANDMARKS]
        ax.plot(LAW_LANDMARKS, accuracies, "o-", color=color, label=f"{n} rows")
    ax.set(xscale="log", xlabel="landmarks", ylabel="accuracy with 500 labels")
    ax.set_xticks(LAW_LANDMARKS, [str(m) for m in LAW_LANDMARKS])
    ax.minorticks_off()
    ax.legend(frameon=False)
    tidy(ax)
    return ax.figure


if __name__ == "__main__":
    write_figures({"landmarks-and-rows": landmarks_and_rows}, sys.argv[1:])

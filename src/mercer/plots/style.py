"""What all figures share: the import of matplotlib with a clear error, and colours that everybody can tell apart."""

from typing import Any

# Okabe and Ito's palette, safe for colour-blind readers; repeated beyond its length.
CATEGORIES = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
    "#8C564B",
    "#7F7F7F",
)
# Where zero has a meaning; otherwise the sequential one.
DIVERGING = "RdBu_r"
SEQUENTIAL = "viridis"


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'mercer[plots]'") from error
    return plt


def axes_or_new(ax: Any, **figure_options: Any) -> Any:
    """Return `ax`, or the axes of a new figure."""
    return ax if ax is not None else pyplot().subplots(layout="constrained", **figure_options)[1]


def tidy(ax: Any) -> None:
    """Take away what a figure does not need."""
    ax.spines[["top", "right"]].set_visible(False)

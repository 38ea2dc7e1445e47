"""What all figures share: the import of matplotlib with a clear error, and colors that everybody can tell apart."""

import math
from typing import Any

# Okabe and Ito's palette, safe for color-blind readers; repeated beyond its length.
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
        raise ModuleNotFoundError("figures need matplotlib: pip install 'mercer[plots]'") from error
    return plt


def axes_or_new(ax: Any, **figure_options: Any) -> Any:
    """Return `ax`, or the axes of a new figure."""
    return ax if ax is not None else pyplot().subplots(layout="constrained", **figure_options)[1]


def tidy(ax: Any) -> None:
    """Take away what a figure does not need."""
    ax.spines[["top", "right"]].set_visible(False)


def series_style(i: int) -> dict[str, str]:
    """Color, line and marker of the i-th curve: where colors repeat, lines and markers differ."""
    # Yellow serves areas; a thin line of it is lost on white.
    colors = [color for color in CATEGORIES if color != "#F0E442"]
    lines, markers = ("-", "--", ":"), ("o", "s", "^", "D", "v", "P", "X")
    return {
        "color": colors[i % len(colors)],
        "linestyle": lines[i // len(colors) % len(lines)],
        "marker": markers[i % len(markers)],
    }


def percent_axes(*axes: Any) -> None:
    """Label shares on the given axes as percentages."""
    for axis in axes:
        axis.set_major_formatter(percent)


def percent(share: float, _place: Any = None) -> str:
    """Return a share as text, with the decimals that it needs: 0.05 as 5%, 0.025 as 2.5%."""
    return f"{100 * share:.4g}%"


def legend_below(ax: Any) -> None:
    """Put the legend under the axis label, where it hides nothing, in the columns that its names leave room for."""
    from matplotlib.transforms import ScaledTranslation

    labels = ax.get_legend_handles_labels()[1]
    # In points, as an axis label is: a share of the axes would be too much or too little for other heights.
    below = ax.transAxes + ScaledTranslation(0, -34 / 72, ax.figure.dpi_scale_trans)
    most = max(1, 84 // (max(map(len, labels)) + 8))
    rows = math.ceil(len(labels) / most)
    # From the right end of the axes to the left: there it may pass under the tick labels, however long.
    ax.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=below,
        fontsize=8,
        frameon=False,
        ncols=math.ceil(len(labels) / rows),
    )

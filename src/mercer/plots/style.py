"""Helpers for all figures: the import of matplotlib, colors, lines and markers, percentages, and legends."""

import math
from typing import Any

# Okabe and Ito's palette, which color-blind readers can distinguish. It is repeated if there are more categories.
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
# The diverging map is used where zero has a meaning, and the sequential one otherwise.
DIVERGING = "RdBu_r"
SEQUENTIAL = "viridis"


def pyplot() -> Any:
    """Return matplotlib.pyplot; if it is missing, the error says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ModuleNotFoundError("figures need matplotlib: pip install 'mercer[plots]'") from error
    return plt


def axes_or_new(ax: Any, **figure_options: Any) -> Any:
    """Return `ax`, or the axes of a new figure."""
    return ax if ax is not None else pyplot().subplots(layout="constrained", **figure_options)[1]


def tidy(ax: Any) -> None:
    """Remove the upper and the right border."""
    ax.spines[["top", "right"]].set_visible(False)


def series_style(i: int) -> dict[str, str]:
    """Return the color, line style and marker of the i-th curve. If colors repeat, lines and markers differ."""
    # Yellow is used for areas only, since thin yellow lines are hardly visible on white.
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
    """Return a share as text, with as many decimals as it needs: 0.05 as 5%, and 0.025 as 2.5%."""
    return f"{100 * share:.4g}%"


def legend_below(ax: Any) -> None:
    """Put the legend below the axis label, where it covers nothing, in as many columns as there is room for."""
    from matplotlib.transforms import ScaledTranslation

    labels = ax.get_legend_handles_labels()[1]
    # The offset is in points, like the size of an axis label. A share of the axes would depend on their height.
    below = ax.transAxes + ScaledTranslation(0, -34 / 72, ax.figure.dpi_scale_trans)
    most = max(1, 84 // (max(map(len, labels)) + 8))
    rows = math.ceil(len(labels) / most)
    # It extends from the right end of the axes to the left, where it may reach below tick labels of any length.
    ax.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=below,
        fontsize=8,
        frameon=False,
        ncols=math.ceil(len(labels) / rows),
    )

"""Names in figures: shortening them, and placing them beside their points without overlaps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# The possible places of a name beside its point: the offset in points (1/72 inch), and the alignment of the name.
SIDES = (
    (5, 0, "left", "center"),
    (-5, 0, "right", "center"),
    (0, 5, "center", "bottom"),
    (0, -5, "center", "top"),
    (4, 4, "left", "bottom"),
    (-4, 4, "right", "bottom"),
    (4, -4, "left", "top"),
    (-4, -4, "right", "top"),
)


def shorten(name: Any, most: int = 28) -> str:
    """Return `name` in at most `most` characters, without its middle, since names often differ at their ends."""
    text = str(name)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def settle_layout(ax: Any) -> None:
    """Lay out the figure of `ax`, or the figure that contains its subfigure, so that sizes in pixels are valid."""
    ax.figure.figure.draw_without_rendering()


def label_points(ax: Any, points: np.ndarray, names: Sequence[str], *, order: Sequence[int]) -> list[Any]:
    """Write the names of the points in `order` beside them, and return the texts.

    A name must not cover a point, another name or a border. Names for which there is no such place are left out; those
    that come first in `order` are placed first. Places are computed for the current size of the figure, so call
    `settle_layout` before.
    """
    pixels = ax.transData.transform(points)
    frame = ax.get_window_extent()
    written: list[Any] = []
    boxes: list[Any] = []
    for i in order:
        for dx, dy, across, along in SIDES:
            text = ax.annotate(
                names[i], points[i], xytext=(dx, dy), textcoords="offset points", ha=across, va=along, fontsize=8
            )
            # Names stay inside the frame, so the layout does not depend on them.
            text.set_in_layout(False)
            box = text.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not box.count_contains(pixels) and not box.count_overlaps(boxes):
                written.append(text)
                boxes.append(box)
                break
            text.remove()
    return written

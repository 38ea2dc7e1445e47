"""Figures of a page: each is drawn once for light and once for dark screens."""

import base64
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np

from mercer.app.report.markup import Html, tag
from mercer.plots.style import pyplot

# On a dark page, the greys of a figure are inverted: black becomes the shade TEXT, white the shade GROUND.
TEXT, GROUND = 0.92, 0.08
# More points than this are drawn as pixels, not as shapes.
MOST_SHAPES = 500
DPI = 150
# Names of columns are never read as formulas, and the same figure always has the same bytes.
SETTINGS = {"text.parse_math": False, "text.usetex": False, "svg.fonttype": "path", "svg.hashsalt": "mercer"}


def figure(draw: Callable[[], Any], caption: str, *, class_: str = "figure") -> Html:
    """Return a figure with a caption, as two images of which the browser shows the one for a light or dark screen.

    Parameters
    ----------
    draw : callable without arguments
        Draws the figure and returns an object with it as `figure_`, such as a Display.
    caption : str
        Also the text for readers who do not see the figure.
    class_ : str, default="figure"
    """
    with _drawing():
        drawn = draw().figure_
        try:
            light = data_uri(_svg(drawn), "image/svg+xml")
            _turn_dark(drawn)
            dark = data_uri(_svg(drawn), "image/svg+xml")
        finally:
            pyplot().close(drawn)
    picture = tag(
        "picture",
        # Printed pages use the light image, also from a dark screen.
        tag("source", media="screen and (prefers-color-scheme: dark)", srcset=dark),
        tag("img", src=light, alt=caption),
    )
    return tag("figure", picture, tag("figcaption", caption), class_=class_)


def data_uri(content: bytes, kind: str) -> str:
    """Return bytes as a data URI, which needs no network."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@contextmanager
def _drawing() -> Iterator[None]:
    plt = pyplot()
    with plt.rc_context(), warnings.catch_warnings():
        plt.rcdefaults()  # the user's own Matplotlib settings must not change the page
        plt.rcParams.update(SETTINGS)
        # Letters that the font lacks are drawn as boxes; the tables of the page show them correctly.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg(drawn: Any) -> bytes:
    for artist in drawn.findobj(match=_has_many_points):
        artist.set_rasterized(True)
    buffer = BytesIO()
    drawn.savefig(buffer, format="svg", transparent=True, dpi=DPI, metadata={"Date": None})
    return buffer.getvalue()


def _has_many_points(artist: Any) -> bool:
    offsets = artist.get_offsets() if hasattr(artist, "get_offsets") else ()
    return len(offsets) > MOST_SHAPES


def _turn_dark(drawn: Any) -> None:
    """Invert the greys of lines, texts and areas. Colors, and what a color map has drawn, stay as they are."""
    for artist in drawn.findobj():
        if getattr(artist, "get_array", lambda: None)() is not None:
            continue
        for part in ("color", "edgecolor", "facecolor"):
            if hasattr(artist, f"get_{part}") and hasattr(artist, f"set_{part}"):
                colors = _turned(getattr(artist, f"get_{part}")())
                if colors is not None:
                    getattr(artist, f"set_{part}")(colors)


def _turned(colors: Any) -> Any:
    """Return colors with their greys inverted; None if there is nothing to change."""
    from matplotlib.colors import to_rgba_array

    rgba = to_rgba_array(colors)
    grey = (np.ptp(rgba[:, :3], axis=1) < 1e-6) & (rgba[:, 3] > 0) if len(rgba) else np.zeros(0, dtype=bool)
    if not grey.any():
        return None
    rgba[grey, :3] = TEXT + (GROUND - TEXT) * rgba[grey, :3]
    return rgba if len(rgba) > 1 else tuple(rgba[0])

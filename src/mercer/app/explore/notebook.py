"""Show the page in a cell of a notebook."""

import html
from typing import Any

from mercer.app.explore.exploration import Exploration
from mercer.app.explore.server import Server


class Page:
    """A page that is being served; a notebook shows it as a frame.

    Attributes
    ----------
    address : str
        The address of the page for a browser, with its token.
    height : int
        The height of the frame in pixels.
    """

    def __init__(self, server: Server, height: int) -> None:
        self._server, self.address, self.height = server, server.address, height

    @property
    def concepts(self) -> list[Any]:
        """The concepts that were named on the page, as `mercer.explain.Concept`."""
        return [named.concept for named in self._server.exploration.concepts.named]

    def close(self) -> None:
        """Stop the server. The frame is blank when it is loaded again."""
        self._server.stop()

    def __repr__(self) -> str:
        return f"Page({self.address!r})"

    def _repr_html_(self) -> str:
        address = html.escape(self.address, quote=True)
        return f'<iframe src="{address}" width="100%" height="{self.height}" style="border:0"></iframe>'


def explore(
    model: Any, X: Any, y: Any = None, *, other: Any = None, height: int = 720, port: int = 0, random_state: Any = 0
) -> Page:
    """Show how a model represents rows on a page to explore, in a notebook or in a browser on this machine.

    The page shows a map on which rows are near that are similar to the model, colored by columns, predictions, doubt or
    clusters. A chosen row is shown with the reasons for its answer. Rows inside a lasso can be exported, or named as a
    concept whose profile is then shown. Nothing leaves the machine.

    Parameters
    ----------
    model : fitted model of Mercer
        Other models that predict or transform can be explored, too, but without reasons by training rows.
    X : data frame, array-like of shape (n, d), or images
        At most 100 000 rows.
    y : array-like of shape (n,), optional
        Targets or classes, shown as one more column.
    other : fitted model, optional
        A second model, to compare on the same rows.
    height : int, default=720
        The height of the frame in a notebook, in pixels.
    port : int, default=0
        The port on this machine. 0 takes a free one.
    random_state : int, RandomState instance or None, default=0
        Draws the rows of which maps of neighborhoods are made.

    Returns
    -------
    Page
        It has an `address`, and is served until `close()` is called or Python ends.
    """
    names = (type(model).__name__, type(other).__name__)
    if other is not None and names[0] == names[1]:
        names = (f"{names[0]} (first)", f"{names[1]} (second)")
    exploration = Exploration(model, X, y, other=other, names=names, title="rows", random_state=random_state)
    return Page(Server(exploration, port, in_notebook=True).start(), height)

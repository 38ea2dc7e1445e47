"""The page in a cell of a notebook."""

import html
from typing import Any

from mercer.app.explore.exploration import Exploration
from mercer.app.explore.server import Server


class Page:
    """A page that is being served; a notebook shows it as a frame.

    Attributes
    ----------
    address : str
        Where a browser finds it, with its token.
    height : int
        Of the frame, in pixels.
    """

    def __init__(self, server: Server, height: int) -> None:
        self._server, self.address, self.height = server, server.address, height

    @property
    def concepts(self) -> list[Any]:
        """What was named on the page, as `mercer.explain.Concept`."""
        return [named.concept for named in self._server.exploration.concepts.named]

    def close(self) -> None:
        """End the server: the frame goes blank when it is loaded again."""
        self._server.stop()

    def __repr__(self) -> str:
        return f"Page({self.address!r})"

    def _repr_html_(self) -> str:
        address = html.escape(self.address, quote=True)
        return f'<iframe src="{address}" width="100%" height="{self.height}" style="border:0"></iframe>'


def explore(
    model: Any, X: Any, y: Any = None, *, other: Any = None, height: int = 720, port: int = 0, random_state: Any = 0
) -> Page:
    """Show what a model sees in rows as a page to explore, in a notebook or in a browser on this machine.

    The page is a map of the rows as the model has them near, colored by columns, predictions, doubt or clusters. A
    chosen row is shown with the reasons for its answer; rows that are lassoed can be exported, or named as a concept
    whose profile is shown at once. Nothing leaves the machine.

    Parameters
    ----------
    model : fitted model of Mercer
        Others that predict or transform can be looked at too, without reasons by rows.
    X : data frame, array-like of shape (n, d), or images
        At most 100 000 rows.
    y : array-like of shape (n,), optional
        Targets or classes, shown as one more column.
    other : fitted model, optional
        To compare with, on the same rows.
    height : int, default=720
        Of the frame in a notebook, in pixels.
    port : int, default=0
        Of the loopback address; 0 takes one that is free.
    random_state : int, RandomState instance or None, default=0
        Draws the rows of which maps of neighborhoods are made.

    Returns
    -------
    Page
        With its `address`, and `close()`. It is served until it is closed or Python ends.
    """
    names = (type(model).__name__, type(other).__name__)
    if other is not None and names[0] == names[1]:
        names = (f"{names[0]} (first)", f"{names[1]} (second)")
    exploration = Exploration(model, X, y, other=other, names=names, title="rows", random_state=random_state)
    return Page(Server(exploration, port, in_notebook=True).start(), height)

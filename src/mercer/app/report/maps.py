"""Interactive maps: where the rows lie, their values, and their pictures if they are images."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.app.files.images import ImageFolder
from mercer.app.report.evidence import sample
from mercer.app.report.figures import figure
from mercer.app.report.markup import Html, tag
from mercer.app.report.words import count, text_of
from mercer.plots import EmbeddingDisplay
from mercer.plots.style import CATEGORIES
from mercer.tables.frames import as_frame, column_names

# The most rows on a map. There are fewer images, since their pixels are part of the page.
MOST_POINTS = {"table": 5000, "images": 2000}
# The most columns that are shown of a row, and the most different values of a column by which a map can be colored.
MOST_COLUMNS, MOST_LEVELS = 20, 30
MOST_IN_LEGEND = 20
NOUN = {"table": "row", "images": "image"}
ONE = {"table": "a row", "images": "an image"}


class Drawn(NamedTuple):
    """Rows that were drawn from the data.

    Attributes
    ----------
    reads : {"table", "images"}
    data : data frame or ImageFolder
        The rows, in order.
    rows : ndarray of shape (n,)
        Their positions in the data.
    n_all : int
        The number of rows that they were drawn from.
    """

    reads: str
    data: Any
    rows: np.ndarray
    n_all: int

    @property
    def names(self) -> list[str]:
        """Return a name for each row."""
        return list(self.data.names) if self.reads == "images" else [f"row {row}" for row in self.rows]

    def words(self) -> str:
        """Return in words how many rows these are, and whether they were drawn at random."""
        noun = NOUN[self.reads]
        if len(self.rows) == self.n_all:
            return f"all {count(self.n_all, noun)}" if self.n_all > 1 else f"the one {noun}"
        return f"{len(self.rows):,} of {count(self.n_all, noun)}, drawn at random"


def draw_samples(reads: str, data: Any, random_state: Any, at_most: int | None = None) -> Drawn:
    """Return the rows of the data, or some of them drawn at random if there are many.

    Parameters
    ----------
    reads : {"table", "images"}
    data : data frame or ImageFolder
    random_state : int, RandomState instance or None
    at_most : int or None, default=None
        None takes 5000 rows or 2000 images.
    """
    most = MOST_POINTS[reads] if at_most is None else at_most
    if isinstance(data, ImageFolder):
        rows = sample(np.arange(len(data.X)), most, random_state)
        return Drawn(reads, some_images(data, rows), rows, len(data.X))
    frame = named_frame_or_images(data)
    rows = sample(np.arange(len(frame)), most, random_state)
    return Drawn(reads, frame.iloc[rows], rows, len(frame))


def named_frame_or_images(data: Any) -> Any:
    """Return images as they are, and a table of any library as a pandas frame whose names are strings."""
    if isinstance(data, ImageFolder):
        return data
    frame = as_frame(data)
    if frame is None:
        raise TypeError(f"data is a {type(data).__name__}: a data frame or an ImageFolder is needed.")
    return frame.set_axis(column_names(frame), axis=1)


def some_images(folder: ImageFolder, rows: Sequence[int] | np.ndarray) -> ImageFolder:
    """Return some of the images."""
    return ImageFolder(folder.X[rows], tuple(folder.names[i] for i in rows), folder.shape)


def map_data(drawn: Drawn, places: np.ndarray, first: Sequence[str] = (), extra: Sequence[dict[str, Any]] = ()) -> dict:
    """Return the data of a map as the script of the page takes them.

    Parameters
    ----------
    drawn : Drawn
    places : ndarray of shape (n, 2)
    first : sequence of str, default=()
        Columns of the table that are shown before the others.
    extra : sequence of dict, default=()
        Columns that are not part of the data, such as clusters. They come before all others.
    """
    columns = list(extra)
    if drawn.reads == "table":
        names = [name for name in first if name in drawn.data.columns]
        names += [name for name in drawn.data.columns if name not in names]
        columns += [encode_column(name, drawn.data[name]) for name in names[:MOST_COLUMNS]]
    elif folders := folders_of(drawn.names):
        columns.append(folders)
    # Both axes have the same scale, so that distances on the map can be compared.
    low, spread = places.min(axis=0), float(np.ptp(places, axis=0).max()) or 1.0
    scaled = (places - low) / spread
    colored = [i for i, column in enumerate(columns) if column["kind"] != "text"]
    return {
        "noun": NOUN[drawn.reads],
        "x": np.round(scaled[:, 0], 4).tolist(),
        "y": np.round(scaled[:, 1], 4).tolist(),
        "names": [str(name) for name in drawn.names],
        "columns": columns,
        "color": colored[0] if colored else None,
        "palette": list(CATEGORIES),
        "sprite": None,
        "landmarks": None,
    }


def encode_column(name: str, values: Any) -> dict[str, Any]:
    """Return a column as the script takes it: numbers, categories as codes with their levels, or texts.

    Parameters
    ----------
    name : str
    values : Series
    """
    if values.dtype.kind in "iuf":
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return {"name": name, "kind": "number", "values": [_rounded(value) for value in numbers]}
    texts = [None if missing else text_of(value) for value, missing in zip(values, values.isna(), strict=True)]
    counts = Counter(text for text in texts if text is not None)
    found = sorted(counts, key=lambda text: (-counts[text], text))
    if len(found) > MOST_LEVELS:
        return {"name": name, "kind": "text", "values": texts}
    return encode_levels(name, texts, found)


def _rounded(value: float) -> float | None:
    """Return a number rounded to five digits. Whole numbers, which may be years or identifiers, are not rounded."""
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.5g}")


def folders_of(names: Sequence[str]) -> dict[str, Any] | None:
    """Return the folders of images as a column, since folders often name classes; None if there is only one."""
    folders = [name.rpartition("/")[0] for name in names]
    levels = sorted(set(folders))
    return encode_levels("folder", folders, levels) if 1 < len(levels) <= MOST_LEVELS else None


def encode_levels(name: str, texts: Sequence[str | None], levels: Sequence[str]) -> dict[str, Any]:
    """Return a column of categories: its levels and, for each row, the position of its level or None."""
    place = {level: i for i, level in enumerate(levels)}
    codes = [None if text is None else place[text] for text in texts]
    return {"name": name, "kind": "category", "levels": list(levels), "codes": codes}


def map_parts(drawn: Drawn, places: np.ndarray, labels: np.ndarray | None, help_: str) -> list[Html]:
    """Return the map: a figure for browsers without scripts, and the elements in which the script draws.

    Parameters
    ----------
    drawn : Drawn
    places : ndarray of shape (n, 2)
    labels : ndarray of shape (n,) or None
        Groups by which the figure is colored.
    help_ : str
        A sentence on what is shown when a row is chosen.
    """
    noun = NOUN[drawn.reads]
    still = figure(lambda: _still(places, labels), f"A map of {drawn.words()}.", class_="figure still")
    keys = (
        f"Point at {ONE[drawn.reads]}, or tap it. With the keyboard: arrows move to a neighbor, Page Up and Page Down "
        f"move through the {noun}s in order, Enter chooses, and Escape ends the choice. {help_}"
    )
    controls = tag("p", tag("label", "Color by ", tag("select", id="map-color")), class_="controls")
    canvas = tag(
        "canvas",
        id="map-canvas",
        tabindex="0",
        role="application",
        aria_label=f"Map of {drawn.words()}",
        aria_describedby="map-help",
    )
    stage = tag("div", canvas, tag("div", id="map-tip", aria_hidden="true", hidden=True), class_="stage")
    live = tag(
        "div",
        controls,
        stage,
        tag("div", id="map-legend"),
        tag("p", id="map-said", class_="said", role="status", aria_live="polite"),
        tag("p", keys, id="map-help", class_="help"),
        tag("div", id="map-chosen", class_="chosen"),
        class_="map",
        id="map",
        hidden=True,
    )
    return [still, live]


def _still(places: np.ndarray, labels: np.ndarray | None) -> Any:
    # A legend of more groups would be higher than the figure.
    shown = labels if labels is not None and len(np.unique(labels)) <= MOST_IN_LEGEND else None
    display = EmbeddingDisplay(places, shown, ("map 1", "map 2")).plot()
    if shown is not None:
        display.ax_.get_legend().set_title("group")
    return display

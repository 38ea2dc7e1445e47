"""The rows that are explored: a table, or images with names."""

from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from mercer.app.files.description import Table
from mercer.app.files.images import ImageFolder
from mercer.exceptions import invalid_parameter
from mercer.tables.frames import as_frame, column_names, optional

# A page draws at most this many points.
MOST_ROWS = 100_000


class Rows(NamedTuple):
    """The rows as the page shows them, and as the models are given them.

    Attributes
    ----------
    frame : DataFrame
        The columns that are shown. For images these are the names, and the folders if there are several.
    images : ndarray of shape (n, height, width) or (n, height, width, 3), or None
        Values from 0 to 1.
    given : Any
        The data as the user gave them.
    """

    frame: Any
    images: np.ndarray | None
    given: Any

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def noun(self) -> str:
        """What a row is called: "row" or "image"."""
        return "row" if self.images is None else "image"

    def name(self, i: int) -> str:
        """Return the name of one row."""
        return f"row {i}" if self.images is None else str(self.frame["name"].iloc[i])

    def picture(self, i: int) -> bytes:
        """Return an image as PNG."""
        if self.images is None:
            raise invalid_parameter("image", i, "asked for only if the rows are images")
        pixels = np.round(255.0 * np.clip(self.images[i], 0.0, 1.0)).astype(np.uint8)
        buffer = BytesIO()
        optional("PIL.Image", "images on a page", "files").fromarray(pixels).save(buffer, format="PNG")
        return buffer.getvalue()


def rows_of(data: Any, y: Any = None, image_shape: tuple[int, ...] | None = None) -> Rows:
    """Return data of any kind as rows to explore.

    Parameters
    ----------
    data : Table, data frame, ImageFolder, or array of shape (n, d) or (n, height, width[, 3])
    y : array-like of shape (n,), optional
        Targets, classes or other groups, shown as one more column.
    image_shape : tuple of int, optional
        The shape of one image, if the rows of an array of shape (n, d) are images.
    """
    pandas = optional("pandas", "a page to explore", "files")
    images, frame = None, as_frame(data.frame if isinstance(data, Table) else data)
    if isinstance(data, ImageFolder):
        images, frame = data.X, _named(pandas, data.names)
    elif frame is not None:
        frame = frame.set_axis(column_names(frame), axis=1).reset_index(drop=True)
    else:
        array = np.asarray(data)
        if array.ndim == 2 and image_shape is not None and len(image_shape) > 1:
            array = array.reshape(len(array), *image_shape)
        if array.ndim not in (2, 3, 4) or not np.issubdtype(array.dtype, np.number) or not len(array):
            raise invalid_parameter("data", array.shape, "a data frame, an array of rows, or images")
        if array.ndim == 2:
            frame = pandas.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])
        else:
            low, high = float(array.min()), float(array.max())
            images = np.asarray((array - low) / ((high - low) or 1.0))
            images = images[..., 0] if images.ndim == 4 and images.shape[-1] == 1 else images
            frame = _named(pandas, [f"image {i}" for i in range(len(array))])
    if len(frame) > MOST_ROWS:
        raise invalid_parameter("data", f"{len(frame)} rows", f"{MOST_ROWS} rows at most", "Draw some of them.")
    if y is not None:
        values = np.asarray(y)
        if values.shape != (len(frame),):
            raise invalid_parameter("y", values.shape, f"one value a row, of shape ({len(frame)},)")
        name = str(getattr(y, "name", None) or "target")
        if values.dtype.kind in "iu" and len(np.unique(values)) <= 20:
            values = values.astype(str)  # whole numbers with few different values are classes
        frame = frame.assign(**{name if name not in frame.columns else f"{name} (given)": values})
    return Rows(frame, images, data)


def _named(pandas: Any, names: Any) -> Any:
    """Return names of images as a table, with their folders if there are several."""
    folders = [str(name).rpartition("/")[0] for name in names]
    columns = {"name": [str(name) for name in names]}
    return pandas.DataFrame(columns | ({"folder": folders} if len(set(folders)) > 1 else {}))

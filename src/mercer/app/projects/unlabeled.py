"""What workflows without labels share: tables or images become rows of numbers, and answers become a table."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.app.files.column import in_words
from mercer.app.files.description import Table
from mercer.app.files.images import ImageFolder, read_images
from mercer.app.files.reading import DEFAULTS, Paths, ReadOptions, read_described, warn_of
from mercer.app.files.tables import check_columns
from mercer.app.projects.new_rows import kinds_for_encoder, read_like_fit, saved_readings, table_of_fit
from mercer.exceptions import DataFileError, invalid_parameter
from mercer.storage.atomic import check_path
from mercer.tables.encoder import TableEncoder
from mercer.tables.frames import as_frame, column_names, optional

if TYPE_CHECKING:
    import pandas as pd

# What rows of either kind of data are called in messages.
NOUNS = {"table": "rows", "images": "images"}


def read_data(paths: Paths, options: ReadOptions = DEFAULTS) -> Any:
    """Return the images of a folder, or the table in one or several files."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if len(several) == 1 and check_path(several[0]).is_dir():
        return read_images(several[0])
    table = read_described(several, options)
    warn_of(table.notes)
    return table


class UnlabeledData(BaseEstimator):
    """Base of workflows without labels: it learns how a data frame or an ImageFolder becomes rows of numbers.

    A table, without the columns in `ignore`, is encoded by a `TableEncoder`. The pixels of an image are one row.

    Attributes
    ----------
    reads : {"table", "images"}
        What the fit was given, and what new data must be.
    n_rows_ : int
    encoder_ : TableEncoder or None
        None for images.
    columns_ : list of str
        The columns of the table that are used, in order; empty for images.
    readings_ : dict
        How each column was read, so that new rows are read in the same way; empty for images.
    image_shape_ : tuple of int or None
        The shape of one image; None for tables.
    names_ : list of str or None
        The names of the images; None for tables, whose rows are known by their number from 0.
    """

    ignore: Sequence[str]
    encoder_: TableEncoder | None
    image_shape_: Any
    names_: list[str] | None

    def describe(self) -> str:
        """Return a description of the data of the fit: rows and kinds of columns, or number and size of images."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            kinds = Counter(self.encoder_.kinds_.values())
            counted = ", ".join(f"{count} {in_words(kind, count)}" for kind, count in kinds.most_common())
            return f"{self.n_rows_} rows and {len(self.columns_)} columns ({counted})"
        height, width, *colors = self.image_shape_
        return f"{self.n_rows_} {'color' if colors else 'grey'} images of {height} x {width} pixels"

    def names_of(self, rows: Iterable[int]) -> list[str] | list[int]:
        """Return the names of images of the fit, or the given numbers for rows of a table.

        Parameters
        ----------
        rows : iterable of int
        """
        check_is_fitted(self)
        return [int(i) if self.names_ is None else self.names_[i] for i in rows]  # type: ignore[return-value]

    def _fit_rows(self, data: Any) -> np.ndarray:
        """Learn how the data are encoded, and return them as rows of shape (n, d)."""
        self.encoder_, self.image_shape_, self.names_, self.columns_ = None, None, None, []
        self.readings_: dict[str, dict[str, Any]] = {}
        if isinstance(data, ImageFolder):
            if len(tuple(self.ignore)):
                raise invalid_parameter("ignore", self.ignore, "empty for images", "Columns are those of tables.")
            self.reads = "images"
            self.image_shape_, self.names_ = data.shape, list(data.names)
            self._check_several(len(data.X))
            X = data.X.reshape(len(data.X), -1)
        else:
            self.reads = "table"
            table = table_of_fit(_checked(data))
            frame = self._kept_columns(table.frame)
            self._check_several(len(frame))
            names = column_names(frame)
            self.encoder_ = TableEncoder(kinds=kinds_for_encoder(table, names, has_target=False))
            X = self.encoder_.fit_transform(frame)
            self.columns_, self.readings_ = names, saved_readings(table, names)
        if (X[0] == X).all():
            raise ValueError(f"all {len(X)} {NOUNS[self.reads]} are equal, so there is nothing to learn.")
        self.n_rows_ = len(X)
        return X

    def _rows(self, data: Any) -> np.ndarray:
        """Return new data as rows, encoded as those of the fit; raise if they are of another kind or shape."""
        if self.encoder_ is not None:
            if isinstance(data, ImageFolder):
                raise DataFileError("the model was fitted to a table, but these are images: a table is needed.")
            return self.encoder_.transform(read_like_fit(_checked(data), self.readings_))
        if not isinstance(data, ImageFolder):
            raise DataFileError("the model was fitted to images, but this is a table: a folder of images is needed.")
        if tuple(data.shape) != self.image_shape_:
            raise DataFileError(
                f"the images have shape {tuple(data.shape)}, but those of the fit had {self.image_shape_}: "
                "read_images(folder, shape) resizes them."
            )
        return data.X.reshape(len(data.X), -1)

    def _answers(self, data: Any, columns: Mapping[str, Any]) -> "pd.DataFrame":
        """Return a table of answers. Its first column has the names of images, or the numbers of rows."""
        pandas = optional("pandas", "a table of answers", "files")
        known = {"name": list(data.names)} if isinstance(data, ImageFolder) else {"row": np.arange(len(data))}
        return pandas.DataFrame({**known, **columns})

    def _kept_columns(self, frame: Any) -> Any:
        """Return the table without the columns that are ignored."""
        ignored = [str(name) for name in self.ignore]
        names = column_names(frame)
        check_columns(names, ignored, "column to ignore")
        kept = [i for i, name in enumerate(names) if name not in ignored]
        if not kept:
            raise invalid_parameter("ignore", self.ignore, "some columns only: none is left")
        return frame.iloc[:, kept]

    def _check_several(self, n: int) -> None:
        if n < 2:
            what = {"table": "row", "images": "image"}[self.reads]
            raise ValueError(f"the data have only {n} {what}: at least two are needed.")


def _checked(data: Any) -> Any:
    if not isinstance(data, Table) and as_frame(data) is None:
        raise TypeError(f"data is a {type(data).__name__}: a data frame or an ImageFolder is needed.")
    return data

"""Tables in files or in Dask: the encoder learns from a random draw, and rows are encoded as they are read."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.rows import DaskRows, MappedRows, RowNumbers, category_columns, frame_of, table_rows, validated_column
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_sums import encoded_in_fit

# The encoder learns from a draw of this many rows. A table with at most as many rows is read into memory instead.
MOST_ENCODED_ROWS = 100_000


class TableElsewhere(NamedTuple):
    """A table whose rows are not in the memory of this process.

    Attributes
    ----------
    rows : Rows
        The rows, with values of dtype object.
    names, categories : tuples of str
        The names of all columns, and of those with a categorical dtype.
    """

    rows: Any
    names: tuple[str, ...]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, X: Any) -> "TableElsewhere":
        """Return a table from rows of files or from a Dask data frame."""
        rows = table_rows(X)
        return cls(rows, tuple(rows.names), category_columns(X))

    def frame(self, index: np.ndarray | slice) -> Any:
        """Return some rows as a data frame."""
        return frame_of(self.rows[index], self.names, self.categories)

    def drawn(self, random_state: Any) -> np.ndarray | None:
        """Return the positions of the rows that the encoder learns from, or None if it learns from all."""
        n = len(self.rows)
        if n <= MOST_ENCODED_ROWS:
            return None
        return np.sort(check_random_state(random_state).choice(n, MOST_ENCODED_ROWS, replace=False))

    def encoded(self, encoder: TableEncoder) -> Any:
        """Return the encoded rows: a Dask array, or rows that are encoded as they are read."""
        return self._as_numbers(encoder, encoded_rows, encoder)

    def encoded_in_fit(self, encoders: Sequence[TableEncoder]) -> Any:
        """Return the encoded rows of the fit. There is one encoder for each fold, or one for all rows.

        An encoder for a fold has means of the target that do not use the rows of this fold.
        """
        if len(encoders) == 1:
            return self.encoded(encoders[0])
        return self._as_numbers(encoders[0], encoded_in_fit, tuple(encoders))

    def _as_numbers(self, encoder: TableEncoder, function: Callable[..., np.ndarray], using: Any) -> Any:
        values = (using, self.names, self.categories)
        names = tuple(encoder.get_feature_names_out())
        if not isinstance(self.rows, DaskRows):
            found = MappedRows(function, values, self.rows, RowNumbers(len(self.rows)))
            found.names = names
            return found
        array, none = self.rows.array, np.empty((0, len(names)))
        chunks = (array.chunks[0], (len(names),))
        return array.map_blocks(of_partition, function, values, dtype=np.float64, chunks=chunks, meta=none)


def of_partition(
    rows: np.ndarray, function: Callable[..., np.ndarray], values: tuple[Any, ...], block_info: Any = None
) -> np.ndarray:
    """Return the encoded rows of one partition of a Dask array; this is what a worker does."""
    first = block_info[0]["array-location"][0][0]
    return function(rows, first + np.arange(len(rows)), *values)


def encoded_rows(
    rows: np.ndarray, numbers: np.ndarray, encoder: TableEncoder, names: tuple[str, ...], categories: tuple[str, ...]
) -> np.ndarray:
    """Return some encoded rows; their positions, `numbers`, do not matter here."""
    if not len(rows):
        return np.empty((0, len(encoder.get_feature_names_out())))
    return np.asarray(encoder.transform(frame_of(rows, names, categories)), dtype=np.float64)


def column_of(y: Any, index: np.ndarray | slice, n_rows: int) -> tuple[Any, Any]:
    """Return the targets of all rows, checked, and those of the rows in `index`."""
    column = validated_column(y, n_rows)
    return column, column[index]

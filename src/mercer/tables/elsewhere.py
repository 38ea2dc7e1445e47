"""Tables in files or with Dask: the encoder learns from a draw, and all rows are encoded as they come."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.rows import DaskRows, MappedRows, RowNumbers, category_columns, frame_of, table_rows, validated_column
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_sums import encoded_in_fit

# Kinds, levels, medians and scales of columns are learned from so many rows. Fewer are brought here and are a table.
MOST_ENCODED_ROWS = 100_000


class TableElsewhere(NamedTuple):
    """A table whose rows are not in this process's memory.

    Attributes
    ----------
    rows : Rows
        Of objects.
    names, categories : tuples of str
        Its columns, and those that are categories by their dtype.
    """

    rows: Any
    names: tuple[str, ...]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, X: Any) -> "TableElsewhere":
        """Return rows of files, or a frame of Dask, as a table."""
        rows = table_rows(X)
        return cls(rows, tuple(rows.names), category_columns(X))

    def frame(self, index: np.ndarray | slice) -> Any:
        """Return some rows as a frame."""
        return frame_of(self.rows[index], self.names, self.categories)

    def drawn(self, random_state: Any) -> np.ndarray | None:
        """Return the numbers of the rows that the encoder learns from; None if these are all."""
        n = len(self.rows)
        if n <= MOST_ENCODED_ROWS:
            return None
        return np.sort(check_random_state(random_state).choice(n, MOST_ENCODED_ROWS, replace=False))

    def encoded(self, encoder: TableEncoder) -> Any:
        """Return the rows as the estimator sees them: a Dask array, or rows that are encoded as they are read."""
        return self._as_numbers(encoder, encoded_rows, encoder)

    def encoded_in_fit(self, encoders: Sequence[TableEncoder]) -> Any:
        """Return the same of rows from whose targets the encoders were made: one for each fold, or one for all."""
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
    """Return the rows of a partition of Dask as numbers: the part of a worker."""
    first = block_info[0]["array-location"][0][0]
    return function(rows, first + np.arange(len(rows)), *values)


def encoded_rows(
    rows: np.ndarray, numbers: np.ndarray, encoder: TableEncoder, names: tuple[str, ...], categories: tuple[str, ...]
) -> np.ndarray:
    """Return rows of objects as numbers, whatever their places are."""
    if not len(rows):
        return np.empty((0, len(encoder.get_feature_names_out())))
    return np.asarray(encoder.transform(frame_of(rows, names, categories)), dtype=np.float64)


def column_of(y: Any, index: np.ndarray | slice, n_rows: int) -> tuple[Any, Any]:
    """Return the targets of all rows as a column beside them, and those of some rows."""
    column = validated_column(y, n_rows)
    return column, column[index]

"""Sources of rows that are computed: the numbers of the rows, and rows that a function makes of other sources."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mercer.blocks import Rows, blocks_of, common_length


class RowNumbers(Rows):
    """The numbers of n rows as a column, for sums that depend on the number of a row.

    Parameters
    ----------
    n_rows : int
    first : int, default=0
        The number of the first row.
    """

    def __init__(self, n_rows: int, first: int = 0) -> None:
        self.shape, self.dtype, self.first = (n_rows,), np.dtype(np.int64), first

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for rows in bounds:
            yield np.arange(self.first + rows.start, self.first + rows.stop)

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.first + np.asarray(index, dtype=np.int64)


class MappedRows(Rows):
    """Rows that a function makes of other rows as they are read, such as the numbers of the classes of labels.

    Parameters
    ----------
    function : callable
        Takes an array of rows of each source, and then `values`; returns as many rows. It must be defined in a module,
        so that it can be sent to workers.
    values : tuple
    *sources : arrays or Rows, all with the same number of rows
    """

    def __init__(self, function: Callable[..., np.ndarray], values: tuple[Any, ...], *sources: Any) -> None:
        self.function, self.values, self.sources = function, values, sources
        none = function(*(source[:0] for source in sources), *values)
        self.shape, self.dtype = (common_length(sources), *none.shape[1:]), none.dtype

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for parts in zip(*(blocks_of(source, bounds) for source in self.sources), strict=True):
            yield self.function(*parts, *self.values)

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.function(*(source[index] for source in self.sources), *self.values)

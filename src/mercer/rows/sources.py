"""Sources that are made of others: the numbers of rows, and rows that a function changes as they come."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mercer.blocks import Rows, blocks_of


class RowNumbers(Rows):
    """The numbers of n rows, as a column: for sums in which the place of a row counts.

    Parameters
    ----------
    n_rows : int
    first : int, default=0
        The number of the first row: how many came before.
    """

    def __init__(self, n_rows: int, first: int = 0) -> None:
        self.shape, self.dtype, self.first = (n_rows,), np.dtype(np.int64), first

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for rows in bounds:
            yield np.arange(self.first + rows.start, self.first + rows.stop)

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.first + np.asarray(index, dtype=np.int64)


class MappedRows(Rows):
    """Rows that a function changes as they come, such as labels into the places of their classes.

    Parameters
    ----------
    source : array or Rows
    function : callable
        Of an array of rows and of `values`; it returns as many rows. Defined in a module, so that it reaches workers.
    values : tuple
    """

    def __init__(self, source: Any, function: Callable[..., np.ndarray], values: tuple[Any, ...] = ()) -> None:
        self.source, self.function, self.values = source, function, values
        none = function(source[:0], *values)
        self.shape, self.dtype = (source.shape[0], *none.shape[1:]), none.dtype

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for part in blocks_of(self.source, bounds):
            yield self.function(part, *self.values)

    def take(self, index: np.ndarray) -> np.ndarray:
        return self.function(self.source[index], *self.values)

"""Rows of which any few can be had at once: those of files and of Dask, copied into a temporary file.

A training reads its rows in an order that is drawn anew for each epoch. Of Parquet files some hundred rows by number
cost as much as all of them; of a file of plain numbers they cost as many small reads, from the memory that the system
has to spare for files if they are there.
"""

import errno
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mercer.blocks import Rows
from mercer.exceptions import DataFileError


class RowsOnDisk(Rows):
    """Rows in an open file of plain numbers, all of them or those of some numbers.

    Parameters
    ----------
    file : binary file
        All rows, one after another.
    like : Rows
        What is in the file: its shape, kind and names.
    numbers : ndarray of shape (n,), optional
        Which rows of the file these are, in their order; all by default.
    """

    def __init__(self, file: Any, like: Rows, numbers: np.ndarray | None = None) -> None:
        self.file, self.like, self.numbers = file, like, numbers
        n_rows = len(like) if numbers is None else len(numbers)
        self.shape, self.dtype, self.names = (n_rows, *like.shape[1:]), like.dtype, like.names

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for rows in bounds:
            yield self.take(np.arange(rows.start, rows.stop))

    def take(self, index: np.ndarray) -> np.ndarray:
        wanted = index if self.numbers is None else self.numbers[index]
        order = np.argsort(wanted, kind="stable")
        # The map lives as long as this call: what it has read is not counted as this process's memory afterwards.
        stored = np.memmap(self.file, self.dtype, "r", shape=self.like.shape)
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        found[order] = stored[wanted[order]]
        return found

    def of_rows(self, index: np.ndarray) -> "RowsOnDisk":
        """Return some of the rows, which stay where they are."""
        return RowsOnDisk(self.file, self.like, index if self.numbers is None else self.numbers[index])


@contextmanager
def rows_at_hand(X: Any) -> Iterator[Any]:
    """Give an array as it is, and a copy of rows that are elsewhere in a temporary file, gone at the end.

    The rows are read once and in their order. Where the system keeps such files is `tempfile.gettempdir()`; they take
    n d numbers there.
    """
    if not isinstance(X, Rows):
        yield X
        return
    with tempfile.TemporaryFile() as file:
        try:
            for part in X.in_order():
                file.write(np.ascontiguousarray(part, dtype=X.dtype).data)
            file.flush()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size, folder = np.dtype(X.dtype).itemsize * int(np.prod(X.shape)) / 2**20, tempfile.gettempdir()
            raise DataFileError(
                f"the rows take {size:.0f} MiB as numbers, and {folder} has no room for them: a loss that is trained "
                "by steps keeps a copy there of rows that are in files or with Dask. Set TMPDIR to a folder with more."
            ) from error
        yield RowsOnDisk(file, X)


def some_rows_of(X: Any, index: np.ndarray) -> Any:
    """Return the rows of these numbers: an array, or rows of a temporary file that stay there."""
    return X.of_rows(index) if isinstance(X, RowsOnDisk) else X[index]

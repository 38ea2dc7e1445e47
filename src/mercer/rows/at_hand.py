"""Rows of files and of Dask, copied into a temporary file from which any few rows can be read quickly.

Training reads the rows in a new random order in each epoch. To read some hundred rows by their numbers from Parquet
files takes as long as to read all rows. From a file of plain numbers it takes some hundred small reads, which are quick
if the system keeps the file in spare memory.
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
    """All or some of the rows in an open file of plain numbers.

    Parameters
    ----------
    file : binary file
        Holds all rows, one after another.
    like : Rows
        The rows that are in the file, for their shape, dtype and names.
    numbers : ndarray of shape (n,), optional
        The row numbers, in the file, of these rows in their order; all by default.
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
        # The map is closed at the end of this call, so that what was read does not count as memory of this process.
        stored = np.memmap(self.file, self.dtype, "r", shape=self.like.shape)
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        found[order] = stored[wanted[order]]
        return found

    def of_rows(self, index: np.ndarray) -> "RowsOnDisk":
        """Return the rows with the row numbers in `index`, which stay in the file."""
        return RowsOnDisk(self.file, self.like, index if self.numbers is None else self.numbers[index])


@contextmanager
def rows_at_hand(X: Any) -> Iterator[Any]:
    """Return an array as it is; copy rows that are elsewhere into a temporary file, which is deleted at the end.

    The rows are read once, in order. The file is in the folder `tempfile.gettempdir()` and holds n d numbers.
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
    """Return the rows with the row numbers in `index`: an array, or rows that stay in the temporary file."""
    return X.of_rows(index) if isinstance(X, RowsOnDisk) else X[index]

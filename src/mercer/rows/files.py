"""Parquet and Arrow files as rows: a file, several, or a folder with partitions, read ahead while blocks are summed."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mercer.blocks import Rows
from mercer.exceptions import invalid_parameter
from mercer.rows.checking import check_numbers
from mercer.rows.cluster import Cluster
from mercer.rows.pieces import NUMBERS, Piece, common_kinds, files_of, pieces_of

# How many rows are decoded at once: enough for the reader to be fast, and few compared with a row group.
ROWS_A_BATCH = 16_384


class FileRows(Rows):
    """Columns of Parquet or Arrow files as rows, as `open_rows` returns them. The rows stay in the files until read.

    Parameters
    ----------
    pieces : sequence of Piece
    kinds : dict of str to str
        The columns to read, and the kind of each (see `mercer.rows.pieces.kind_of`).
    is_column : bool, default=False
        Whether there is only one column, and the shape is (n,).
    skipped : int, default=0
        How many rows at the beginning of the first piece are left out.
    n_rows : int, optional
        How many rows there are; by default all rows of the pieces.
    number : int, default=0
        The number of the first row among all rows, for errors.
    client : distributed.Client, optional
        The client whose workers compute sums over these rows; the files must have the same paths there. None is this
        process.
    checkpoint : str or path, optional
        A folder in which partial sums are saved (see `mercer.rows.kept`).
    """

    names: tuple[str, ...]

    def __init__(
        self,
        pieces: Sequence[Piece],
        kinds: dict[str, str],
        is_column: bool = False,
        *,
        skipped: int = 0,
        n_rows: int | None = None,
        number: int = 0,
        client: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.checkpoint = checkpoint
        self.pieces, self.kinds, self.is_column, self.number = list(pieces), dict(kinds), is_column, number
        self.names = tuple(kinds)
        # The number, among these rows, of the first row of each piece.
        self.starts = np.cumsum([-skipped, *(piece.n_rows for piece in pieces)])
        n = int(self.starts[-1]) if n_rows is None else n_rows
        self.shape = (n,) if is_column else (n, len(kinds))
        self.cluster = None if client is None else Cluster(client)
        if is_column:
            self.dtype = np.dtype(NUMBERS.get(kinds[self.names[0]], object))
        else:
            self.dtype = np.dtype(np.float32 if set(kinds.values()) == {"float32"} else np.float64)

    # ---- columns ----------------------------------------------------------------------------------------------

    def column(self, name: str) -> "FileRows":
        """Return one column as rows of shape (n,), such as the target."""
        return self._with([name], is_column=True)

    def without(self, *names: str) -> "FileRows":
        """Return the rows with all columns but those named."""
        for name in names:
            self._check(name)
        return self._with([own for own in self.names if own not in names], is_column=False)

    def _with(self, names: Sequence[str], is_column: bool) -> "FileRows":
        for name in names:
            self._check(name)
        client = None if self.cluster is None else self.cluster.client
        kinds = {name: self.kinds[name] for name in names}
        return type(self)(self.pieces, kinds, is_column, client=client, checkpoint=self.checkpoint)

    def _check(self, name: str) -> None:
        if name not in self.names:
            raise invalid_parameter("column", name, self.names)

    # ---- rows -------------------------------------------------------------------------------------------------

    def between(self, rows: slice) -> "FileRows":
        """Return the rows of a slice as `FileRows` with the same workers and the same checkpoint."""
        part = self._part(rows)
        part.cluster, part.checkpoint = self.cluster, self.checkpoint
        return part

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        """Yield the rows of each slice in turn. Adjacent slices are read in one pass, and a thread reads ahead."""
        if not bounds:
            return
        if any(before.stop != after.start for before, after in pairwise(bounds)):
            for rows in bounds:
                yield from self.blocks([rows])
            return
        waiting = read_ahead(self._read(bounds[0].start, bounds[-1].stop))
        left = np.empty((0, *self.shape[1:]), self.dtype)
        for rows in bounds:
            parts, missing = [], rows.stop - rows.start
            while missing > 0:
                left = left if len(left) else next(waiting)
                parts.append(left[:missing])
                left, missing = left[missing:], missing - len(parts[-1])
            yield parts[0] if len(parts) == 1 else np.concatenate(parts or [left[:0]])

    def take(self, index: np.ndarray) -> np.ndarray:
        """Return the rows with the row numbers in `index`; each row group that has one of them is read once."""
        rising, back = np.unique(index, return_inverse=True)
        found = np.empty((len(rising), *self.shape[1:]), self.dtype)
        of_piece = np.searchsorted(self.starts, rising, side="right") - 1
        for piece in np.unique(of_piece):
            places = np.flatnonzero(of_piece == piece)
            within, at = rising[places] - self.starts[piece], 0
            for batch in self._batches(piece):
                here = slice(*np.searchsorted(within, [at, at + batch.num_rows]))
                if here.stop > here.start:
                    found[places[here]] = self._array(batch.take(within[here] - at), piece, within[here])
                at += batch.num_rows
        return found[back.reshape(-1)]

    def parts(self, bounds: Sequence[slice]) -> list["FileRows"]:
        """Return each slice as `FileRows` of only the pieces that it needs, so that a worker can read them itself."""
        return [self._part(rows) for rows in bounds]

    def _part(self, rows: slice) -> "FileRows":
        first = int(np.searchsorted(self.starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(self.starts, rows.stop, side="left"))
        first = min(first, len(self.pieces) - 1)
        return type(self)(
            self.pieces[first:last],
            self.kinds,
            self.is_column,
            skipped=int(rows.start - self.starts[first]),
            n_rows=rows.stop - rows.start,
            number=self.number + rows.start,
        )

    def _read(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Yield the rows from `start` to `stop` as arrays, one for each batch that the files are read in."""
        first, last = np.searchsorted(self.starts, [start, stop], side="right")
        for piece in range(int(first) - 1, min(int(last), len(self.pieces))):
            begin, at = int(self.starts[piece]), 0
            for batch in self._batches(piece):
                here = slice(max(start - begin - at, 0), min(stop - begin - at, batch.num_rows))
                if here.stop > here.start:
                    places = np.arange(at + here.start, at + here.stop)
                    yield self._array(batch.slice(here.start, here.stop - here.start), piece, places)
                at += batch.num_rows
                if begin + at >= stop:
                    return

    def _batches(self, piece: int) -> Iterator[Any]:
        stored = [name for name in self.names if name not in self.pieces[piece].keys]
        return self.pieces[piece].batches(stored, ROWS_A_BATCH)

    def _array(self, batch: Any, piece: int, places: np.ndarray) -> np.ndarray:
        """Return a batch as a checked array; `places` are the numbers of its rows within the piece."""
        keys = self.pieces[piece].keys
        columns = [
            np.full(batch.num_rows, keys[name]) if name in keys else batch.column(name).to_numpy(zero_copy_only=False)
            for name in self.names
        ]
        if self.is_column:
            # A column of whole numbers with missing values is read as floats, so that the check finds the NaN.
            rows = columns[0] if columns[0].dtype.kind == "f" else columns[0].astype(self.dtype)
        else:
            rows = np.empty((batch.num_rows, len(columns)), self.dtype)
            for j, column in enumerate(columns):
                rows[:, j] = column
        first = self.number + int(self.starts[piece])
        check_numbers(rows, self.pieces[piece].place, self.names, first + places)
        return rows.astype(self.dtype, copy=False)


def read_ahead(items: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the items; a thread computes the next one while the caller works on the last."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item


def open_rows(path: Any, columns: Sequence[str] | None = None, *, client: Any = None, checkpoint: Any = None) -> Any:
    """Return the rows of files that need not fit into memory: Parquet, Arrow, or a NumPy file as a memory map.

    Parameters
    ----------
    path : str, path or sequence of these
        A file, a pattern such as "data/*.parquet", or a folder. Folders in it may be named "key=value"; each key is
        then a column.
    columns : sequence of str, optional
        The columns to read; all by default. `rows.without("y")` and `rows.column("y")` separate rows and target later.
    client : distributed.Client, optional
        The client whose workers compute the sums over the rows. They read the files themselves, so that the files must
        have the same paths there.
    checkpoint : str or path, optional
        A folder in which partial sums over the rows are saved; it is created if it does not exist. If the process of a
        fit is lost, the same fit started again continues from there and has the same result. Remove the folder after
        that.

    Returns
    -------
    FileRows, or a memory map for a `.npy` file

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> from mercer.rows import open_rows
    >>> frame = pd.DataFrame(np.random.RandomState(0).normal(size=(100, 3)), columns=["a", "b", "y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(f"{folder}/part-0.parquet")
    ...     rows = open_rows(folder)
    ...     rows.without("y").shape, rows.column("y").shape
    ((100, 2), (100,))
    """
    is_one = isinstance(path, str | os.PathLike)
    if is_one and Path(path).suffix == ".npy":
        return np.load(path, mmap_mode="r")
    found = [file for each in ([path] if is_one else path) for file in files_of(each)]
    if not found:
        raise invalid_parameter("path", str(path), "a pattern or a folder that has Parquet or Arrow files")
    pieces: list[Piece] = []
    kinds: dict[str, str] | None = None
    for file, keys in found:
        own, own_kinds = pieces_of(file, keys)
        if kinds is None:
            missing = [name for name in columns or () if name not in own_kinds]
            if missing:
                raise invalid_parameter("columns", missing, own_kinds)
            kinds = own_kinds if columns is None else {name: own_kinds[name] for name in columns}
        kinds = common_kinds(kinds, own_kinds, file, found[0][0])
        pieces += own
    return FileRows(pieces, kinds or {}, client=client, checkpoint=checkpoint)

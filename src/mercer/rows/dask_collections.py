"""Dask arrays and frames as rows: partitions stay where they are, and each task takes the rows of its blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mercer.blocks import Rows
from mercer.exceptions import DataFileError, invalid_parameter, shown
from mercer.rows.checking import check_numbers
from mercer.rows.cluster import Cluster

# How many partitions are fetched together: so many workers can be busy, and so many partitions are in memory.
PARTITIONS_AT_ONCE = 8


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask. It is recognized by its module, so that Dask need not be imported here."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


class DaskRows(Rows):
    """The rows of a Dask array of one or two dimensions, of a Dask frame, or of one of its columns.

    Rows are numbered through all partitions. Blocks are cut by the number of rows and not by partitions, so that the
    partitions do not change the results. The fewest rows are sent between workers if a partition has about as many rows
    as a task (some 10 000).

    Parameters
    ----------
    collection : dask array, frame or series
        The sizes of an array's partitions must be known; those of a frame are counted when this object is made.
    name : str, default="X"
        The name of the collection in errors.
    client : distributed.Client or None, default=None
        None is Dask's default: the client that was created last, or threads of this process.
    checkpoint : str or path, optional
        A folder in which partial sums are saved, as for `open_rows`.
    """

    checkpoint: Any = None

    def __init__(self, collection: Any, name: str = "X", client: Any = None, checkpoint: Any = None) -> None:
        import dask.array

        self.checkpoint = checkpoint
        self.cluster = Cluster(client)
        if not isinstance(collection, dask.array.Array):
            if collection.ndim == 1:
                kind = collection.dtype
                collection = collection if getattr(kind, "kind", "O") in "fiub" else collection.astype(object)
            else:
                self.names = tuple(str(column) for column in collection.columns)
                _check_kinds(collection, name)
            collection = collection.to_dask_array(lengths=True)
        if np.isnan(collection.shape[0]):
            raise invalid_parameter(
                name,
                shown(collection),
                "a Dask array whose partitions have known numbers of rows",
                f"{name}.compute_chunk_sizes() counts them.",
            )
        if collection.ndim not in (1, 2):
            raise invalid_parameter(name, collection.shape, "of shape (rows, columns), or a single column")
        kind = collection.dtype
        if collection.ndim == 2:
            if kind.kind not in "fiub":
                raise invalid_parameter(name, kind, "of numbers", "Encode other kinds first.")
            kind = np.dtype(np.float32 if kind == np.float32 else np.float64)
            collection = collection.rechunk({1: -1}).astype(kind)
        none = np.empty((0,) * collection.ndim, kind)
        self.array = collection.map_blocks(_checked, name, self.names, dtype=kind, meta=none)
        self.shape, self.dtype = tuple(int(size) for size in collection.shape), kind

    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        for rows in bounds:
            yield np.asarray(self.cluster.compute([self.array[rows]])[0])

    def in_order(self) -> Iterator[np.ndarray]:
        # Whole partitions are computed: with slices, a partition that two slices share would be computed twice.
        partitions = list(self.array.partitions)
        for i in range(0, len(partitions), PARTITIONS_AT_ONCE):
            yield from self.cluster.compute(partitions[i : i + PARTITIONS_AT_ONCE])

    def take(self, index: np.ndarray) -> np.ndarray:
        rising, back = np.unique(index, return_inverse=True)
        return np.asarray(self.cluster.compute([self.array[rising]])[0])[back.reshape(-1)]

    def parts(self, bounds: Sequence[slice]) -> Sequence[Any]:
        sizes = tuple(rows.stop - rows.start for rows in bounds)
        return list(self.array.rechunk({0: sizes}).to_delayed().reshape(-1))


def _check_kinds(frame: Any, name: str) -> None:
    """Raise if a frame has columns that are not numbers."""
    others = [str(column) for column, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if others:
        raise invalid_parameter(name, others, "columns of numbers", "Encode other kinds first.")


def _checked(rows: np.ndarray, name: str, names: Sequence[str] | None, block_info: Any = None) -> np.ndarray:
    """Return the rows of a partition; if a number is not finite, the error names the partition."""
    info = block_info[0] if block_info else None
    where = "" if info is None else f"partition {info['chunk-location'][0]}"
    first = 0 if info is None else info["array-location"][0][0]
    try:
        check_numbers(rows, where, names, first + np.arange(len(rows)))
    except DataFileError as error:
        raise DataFileError(f"{name}: {error}") from None
    return rows

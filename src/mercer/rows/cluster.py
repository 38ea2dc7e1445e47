"""The loop over rows on Dask's workers: blocks as tasks, and a tree of sums over them, in Dask's own messages.

Nothing is placed on a worker that the scheduler could not have made again: values travel in the graph, and rows are
read by the tasks, or come from the user's own collection. A worker that is lost costs its tasks and no more.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import Rows, common_length, row_slices
from mercer.exceptions import ClusterError
from mercer.rows.kept import kept_sum
from mercer.rows.sources import MappedRows
from mercer.rows.tree import FAN, Make, added, block_map, block_sum

# Tasks that are asked for at once where sums are kept; a power of the tree's branches, so that its shape is the same.
WAVE = FAN * FAN
# Bytes of arrays that are sent to workers together: Dask has more of them travel by other ways, and says so.
MOST_SENT = 8 * 2**20


class Cluster:
    """Where sums are made: with a client of `dask.distributed`, or with whatever Dask would use.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is Dask's own choice: the client that was made last, or threads of this process.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def summed(
        self, make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows_a_block: int, **kind: Any
    ) -> tuple[Tensor, ...]:
        """Return what `mercer.rows.sum_over_rows` does; branches of the tree are tasks."""
        from dask import delayed

        kept = kept_sum(make, values, sources, rows_a_block, "tasks")
        tasks = list(self._tasks(block_sum, make, values, sources, rows_a_block, kind))
        # Without a file all tasks are one wave. With one, so many are asked for at once that a client that is lost
        # loses some minutes, and the sums of what is done come here.
        wave = len(tasks) if kept.file is None else WAVE
        while kept.done * wave < len(tasks):
            some = tasks[kept.done * wave : (kept.done + 1) * wave]
            while len(some) > 1:
                some = [delayed(added)(some[i : i + FAN]) for i in range(0, len(some), FAN)]
            kept.add([torch.as_tensor(np.array(term)) for term in self.compute(some)[0]])
        kept.write()
        return tuple(term.to(kind.get("device")) for term in kept.total.total() or ())

    def mapped(
        self, make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows_a_block: int, **kind: Any
    ) -> tuple[np.ndarray, ...]:
        """Return what `mercer.rows.map_over_rows` does; as many rows as a branch of the tree has are a task."""
        found = self.compute(list(self._tasks(block_map, make, values, sources, rows_a_block, kind)))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def gathered(self, function: Any, values: tuple[Any, ...], source: Any, bounds: Sequence[slice]) -> list[Any]:
        """Return what `mercer.rows.gather_over_rows` does."""
        from dask import delayed

        return list(self.compute([delayed(of_part)(function, part, values) for part in parts_of(source, bounds)]))

    def each(self, function: Any, values: tuple[Any, ...], parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield what `mercer.rows.of_each_part` does; arrays go to workers some at a time, as tasks."""
        from dask import delayed

        waiting: list[Any] = []
        size = 0
        shared = delayed(values, pure=False, traverse=False)
        for part in parts:
            own = sum(getattr(array, "nbytes", 0) for array in part)
            if waiting and size + own > MOST_SENT:
                yield from self.compute(waiting)
                waiting, size = [], 0
            waiting.append(delayed(of_arrays, pure=False)(function, shared, delayed(part, pure=False, traverse=False)))
            size += own
        yield from self.compute(waiting) if waiting else ()

    def _tasks(
        self, function: Any, make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows: int, kind: Any
    ) -> Iterator[Any]:
        from dask import delayed

        bounds = list(row_slices(common_length(sources), FAN * rows))
        shared = delayed(values, pure=False, traverse=False)
        for parts in zip(*(parts_of(source, bounds) for source in sources), strict=True):
            yield delayed(function, pure=False)(make, shared, list(parts), rows, **kind)

    def compute(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of tasks; an error of a worker says what to lower, and one of the data where it is."""
        import dask

        try:
            if self.client is None:
                return dask.compute(*tasks)
            return self.client.gather(self.client.compute(list(tasks)))
        except Exception as error:
            # Known by its name, since Dask's threads need no `distributed`.
            if type(error).__name__ != "KilledWorker":
                raise
            raise ClusterError(
                "a task was lost with its worker several times over: most likely it needs more memory than a worker "
                "has. Lower working_memory or n_landmarks, make partitions or row groups smaller, or give each worker "
                "more memory."
            ) from error


def of_part(function: Any, part: Any, values: tuple[Any, ...]) -> Any:
    """Return what a function says of a part of the rows: the task of a worker."""
    return function(np.asarray(part), *values)


def of_arrays(function: Any, values: tuple[Any, ...], part: tuple[Any, ...]) -> Any:
    """Return what a function says of arrays: the task of a worker."""
    return function(*part, *values)


def cluster_of(sources: Sequence[Any]) -> Cluster | None:
    """Return where sums over these sources are made; None is this process."""
    for source in sources:
        inside = source.sources if isinstance(source, MappedRows) else ()
        cluster = cluster_of(inside) if inside else getattr(source, "cluster", None)
        if isinstance(cluster, Cluster):
            return cluster
    return None


def parts_of(source: Any, bounds: Sequence[slice]) -> Sequence[Any]:
    """Return the rows of each slice as a task is given them: a part of files to read, an array, or Dask's own task."""
    if isinstance(source, MappedRows):
        inside = [parts_of(each, bounds) for each in source.sources]
        return [_made_of(parts, source) for parts in zip(*inside, strict=True)]
    if not isinstance(source, Rows):
        return [source[rows] for rows in bounds]
    return source.parts(bounds)


def _made_of(parts: Sequence[Any], source: MappedRows) -> Any:
    from dask import delayed
    from dask.delayed import Delayed

    if any(isinstance(part, Delayed) for part in parts):
        return delayed(rows_made_of)(source.function, source.values, list(parts))
    return MappedRows(source.function, source.values, *parts)


def rows_made_of(function: Any, values: tuple[Any, ...], parts: Sequence[Any]) -> np.ndarray:
    """Return the rows that a function makes of parts of others: the task of a worker."""
    return function(*(np.asarray(part) for part in parts), *values)

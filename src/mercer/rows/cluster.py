"""The loop over rows on Dask's workers: tasks compute the blocks, and further tasks add them up in a tree.

Nothing is stored on a worker that the scheduler could not compute again: values are sent with the task graph, and rows
are read by the tasks or belong to the user's own collection. If a worker is lost, only its tasks are repeated.
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

# How many tasks are submitted at once if sums are checkpointed. A power of FAN, so that the tree keeps its shape.
WAVE = FAN * FAN
# How many tasks each thread of the workers should have at least, so that none is idle for long at the end; and the most
# blocks of a task, which is some seconds of work.
TASKS_A_THREAD, MOST_BLOCKS = 12, FAN**3
# How many bytes of arrays are sent to workers together; Dask warns about larger graphs.
MOST_SENT = 8 * 2**20


class Cluster:
    """The workers that compute sums over rows: those of a client of `dask.distributed`, or Dask's default.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is Dask's default: the client that was created last, or threads of this process.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client

    def summed(
        self, make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows_a_block: int, **placement: Any
    ) -> tuple[Tensor, ...]:
        """Return the result of `mercer.rows.sum_over_rows`; each branch of the tree is a task."""
        from dask import delayed

        kept = kept_sum(make, values, sources, rows_a_block, f"tasks {placement.get('dtype')}")
        blocks = FAN if kept.file is not None else self._blocks_a_task(-(-common_length(sources) // rows_a_block))
        tasks = list(self._tasks(block_sum, make, values, sources, rows_a_block, placement, blocks))
        # Without a checkpoint all tasks are one wave. With one, a wave takes some minutes; its sum is then fetched and
        # added to the file. If the client is lost, only the current wave is lost with it.
        wave = len(tasks) if kept.file is None else WAVE
        while kept.done * wave < len(tasks):
            some = tasks[kept.done * wave : (kept.done + 1) * wave]
            while len(some) > 1:
                some = [delayed(added)(some[i : i + FAN]) for i in range(0, len(some), FAN)]
            kept.add([torch.as_tensor(np.array(term)) for term in self.compute(some)[0]])
        kept.write()
        return tuple(term.to(placement.get("device")) for term in kept.total.total() or ())

    def mapped(
        self, make: Make, values: tuple[Any, ...], sources: Sequence[Any], rows_a_block: int, **placement: Any
    ) -> tuple[np.ndarray, ...]:
        """Return the result of `mercer.rows.map_over_rows`; a task has as many rows as a branch of the tree."""
        found = self.compute(list(self._tasks(block_map, make, values, sources, rows_a_block, placement)))
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def gathered(self, function: Any, values: tuple[Any, ...], source: Any, bounds: Sequence[slice]) -> list[Any]:
        """Return the result of `mercer.rows.gather_over_rows`."""
        from dask import delayed

        return list(self.compute([delayed(of_part)(function, part, values) for part in parts_of(source, bounds)]))

    def each(self, function: Any, values: tuple[Any, ...], parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield what `mercer.rows.of_each_part` does; at most `MOST_SENT` bytes of parts are sent together."""
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

    def _blocks_a_task(self, n_blocks: int) -> int:
        """Return how many blocks a task sums: a power of FAN, so that the shape of the tree does not depend on it.

        The result of a task is as large as the landmarks squared. The fewer tasks there are, the less travels.
        """
        blocks, threads = FAN, 1 if self.client is None else sum(self.client.nthreads().values())
        while blocks < MOST_BLOCKS and n_blocks >= FAN * blocks * TASKS_A_THREAD * threads:
            blocks *= FAN
        return blocks

    def _tasks(
        self,
        function: Any,
        make: Make,
        values: tuple[Any, ...],
        sources: Sequence[Any],
        rows: int,
        placement: Any,
        blocks: int = FAN,
    ) -> Iterator[Any]:
        """Yield one task for each branch of the tree, which calls `function` with the rows of so many blocks."""
        from dask import delayed

        bounds = list(row_slices(common_length(sources), blocks * rows))
        shared = delayed(values, pure=False, traverse=False)
        for parts in zip(*(parts_of(source, bounds) for source in sources), strict=True):
            yield delayed(function, pure=False)(make, shared, list(parts), rows, **placement)

    def compute(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of tasks; if workers die of them, the error says what to lower."""
        import dask

        try:
            if self.client is None:
                return dask.compute(*tasks)
            return self.client.gather(self.client.compute(list(tasks)))
        except Exception as error:
            # Recognized by its name: `distributed` need not be installed for Dask's threads.
            if type(error).__name__ != "KilledWorker":
                raise
            raise ClusterError(
                "a task was lost with its worker several times over: most likely it needs more memory than a worker "
                "has. Lower working_memory or n_landmarks, make partitions or row groups smaller, or give each worker "
                "more memory."
            ) from error


def of_part(function: Any, part: Any, values: tuple[Any, ...]) -> Any:
    """Return the result of a function for a part of the rows. This is a task of a worker."""
    return function(np.asarray(part), *values)


def of_arrays(function: Any, values: tuple[Any, ...], part: tuple[Any, ...]) -> Any:
    """Return the result of a function for a tuple of arrays. This is a task of a worker."""
    return function(*part, *values)


def cluster_of(sources: Sequence[Any]) -> Cluster | None:
    """Return the cluster that sums over these sources are computed on, or None for this process."""
    for source in sources:
        inside = source.sources if isinstance(source, MappedRows) else ()
        cluster = cluster_of(inside) if inside else getattr(source, "cluster", None)
        if isinstance(cluster, Cluster):
            return cluster
    return None


def parts_of(source: Any, bounds: Sequence[slice]) -> Sequence[Any]:
    """Return the rows of each slice as a task receives them: files to read, an array, or a task of Dask."""
    if isinstance(source, MappedRows):
        inside = [parts_of(each, bounds) for each in source.sources]
        return [_made_of(parts, source) for parts in zip(*inside, strict=True)]
    if not isinstance(source, Rows):
        return [source[rows] for rows in bounds]
    return source.parts(bounds)


def _made_of(parts: Sequence[Any], source: MappedRows) -> Any:
    """Return the rows that the function of `source` makes of parts of its sources, as a task if a part is one."""
    from dask import delayed
    from dask.delayed import Delayed

    if any(isinstance(part, Delayed) for part in parts):
        return delayed(rows_made_of)(source.function, source.values, list(parts))
    return MappedRows(source.function, source.values, *parts)


def rows_made_of(function: Any, values: tuple[Any, ...], parts: Sequence[Any]) -> np.ndarray:
    """Return the rows that a function makes of parts of other sources. This is a task of a worker."""
    return function(*(np.asarray(part) for part in parts), *values)

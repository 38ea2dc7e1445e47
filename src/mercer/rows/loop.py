"""The one loop over rows: what a family sums, or works out, for a block of rows is done for all, wherever they are.

A family writes a function of values (a kernel, landmarks) that returns a function of blocks. It is called once in this
process, or once a task on a worker, so that what depends on the landmarks alone is prepared once. Both are defined in a
module and all they need is in the values, so that they reach workers by Dask's own messages.

Sums are the same whoever makes them. Blocks are cut by the number of their rows alone, and added in float64 in a tree
of `FAN` branches whose shape follows from the number of blocks: neither partitions nor workers change it. One process
and ten then give the same bits, if their BLAS does: a matrix product by two threads may differ from that by one in the
last place, by about 1e-16 of its largest term.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import (
    ROWS_A_PART,
    Rows,
    as_block,
    blocks_of,
    common_length,
    row_slices,
    rows_per_block,
    walk,
    walk_by,
)
from mercer.linalg import in_parallel
from mercer.rows.cluster import Cluster, cluster_of
from mercer.rows.kept import kept_sum
from mercer.rows.tree import Make


def sum_over_rows(
    make: Make,
    values: tuple[Any, ...],
    *sources: Any,
    rows_a_block: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    n_threads: int = 1,
) -> tuple[Tensor, ...]:
    """Sum what a function returns for each block of rows: the primitive behind every fit on landmarks.

    Parameters
    ----------
    make : callable
        Of the values; it returns the function of blocks, whose results have shapes that do not depend on the block.
    values : tuple
    *sources : arrays, tensors or Rows, all with the same number of rows
        Where any of them is with a cluster, the sum is made there.
    rows_a_block : int
        Of `mercer.blocks.rows_per_block`.
    dtype, device
        Of the blocks; columns of whole numbers stay whole.
    n_threads : int, default=1
        Blocks that are worked out side by side in this process, each with one thread of BLAS, if the function allows.

    Returns
    -------
    tuple of tensors, float64 where they are no whole numbers
    """
    n_rows = common_length(sources)
    if n_rows == 0:
        raise ValueError("there are no rows to sum over: the first array has shape[0] = 0, at least 1 is needed.")
    if (cluster := cluster_of(sources)) is not None:
        return cluster.summed(make, values, sources, rows_a_block, dtype=dtype, device=device)
    kept = kept_sum(make, values, sources, rows_a_block, f"blocks {dtype}", device)
    function = make(*values)
    waiting = walk_by(sources, rows_a_block, dtype=dtype, device=device, done=kept.done)
    while group := [blocks for _, blocks in islice(waiting, n_threads)]:
        for terms in in_parallel(lambda blocks: function(*blocks), group, n_threads):
            kept.add(terms)
    kept.write()
    return tuple(term.to(device) for term in kept.total.total() or ())


def gather_over_rows(function: Callable[..., Any], values: tuple[Any, ...], source: Any) -> list[Any]:
    """Return what a function of an array of rows, and of values, says of one large part of the rows after another.

    For what is no sum of tensors: the different labels of a column, or the labels themselves.
    """
    bounds = list(row_slices(len(source), ROWS_A_PART))
    if (cluster := cluster_of([source])) is not None:
        return cluster.gathered(function, values, source, bounds)
    return [function(np.asarray(part), *values) for part in blocks_of(source, bounds)]


def of_each_part(
    function: Callable[..., Any], values: tuple[Any, ...], parts: Iterable[tuple[Any, ...]], cluster: Cluster | None
) -> Iterator[Any]:
    """Yield what a function of arrays, and of values, says of one part after another: here, or by workers.

    For parts that are work enough to be sent, such as the rows of a leaf. The parts are made as they are needed.

    Parameters
    ----------
    function : callable
        Of the arrays of a part, and the values. Defined in a module, so that it reaches workers.
    values : tuple
    parts : iterable of tuples of arrays and plain values
    cluster : Cluster or None
        `cluster_of` the rows; None is this process.
    """
    if cluster is not None:
        yield from cluster.each(function, values, parts)
        return
    for part in parts:
        yield function(*part, *values)


def write_by_rows(
    write: Callable[..., None],
    *sources: Any,
    bytes_per_row: int,
    working_memory: float,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    n_threads: int = 1,
) -> None:
    """Call a function with the slice and the rows of each block; it writes its result to where that belongs.

    Rows in memory are given to several Python threads, each with one thread of BLAS. While one of them writes, another
    multiplies; threads that share a product would wait for the slowest after each step, and beside a busy process that
    is most of the time. The kernel matrix of 60 000 x 1000 rows of 784 columns takes 1.1 times its bare product in
    this way, and 1.2 times if the threads share each product (two cores).

    Parameters
    ----------
    write : callable
        Of (slice, block of each source). Blocks do not overlap, so that it may run in several threads at once.
    *sources : arrays, tensors or Rows, all with the same number of rows
    bytes_per_row : int
        What one row costs the function in temporary arrays.
    working_memory : float
        MiB for the temporary arrays of all threads together.
    dtype, device
        Of the blocks.
    n_threads : int, default=1
        Python threads, where there are at least two blocks for each.
    """
    n_rows = common_length(sources)
    rows_a_block = rows_per_block(n_rows, bytes_per_row, working_memory / n_threads)
    if n_rows < 2 * n_threads * rows_a_block or any(isinstance(source, Rows) for source in sources):
        for place, blocks in walk(
            sources, bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=dtype, device=device
        ):
            write(place, *blocks)
        return
    in_parallel(
        lambda place: write(place, *(as_block(source[place], dtype, device) for source in sources)),
        row_slices(n_rows, rows_a_block),
        n_threads,
    )


def map_over_rows(
    make: Make,
    values: tuple[Any, ...],
    *sources: Any,
    rows_a_block: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> tuple[np.ndarray, ...]:
    """Return what a function works out for each row, as arrays of n rows in this process.

    Parameters
    ----------
    make, values, sources, rows_a_block, dtype, device
        As in `sum_over_rows`; the results of a block have one row each of its rows.
    """
    n_rows = common_length(sources)
    if (cluster := cluster_of(sources)) is not None:
        return cluster.mapped(make, values, sources, rows_a_block, dtype=dtype, device=device)
    function = make(*values)
    kept: list[np.ndarray] = []
    for place, blocks in walk_by(sources, rows_a_block, dtype=dtype, device=device):
        parts = [part.cpu().numpy() for part in function(*blocks)]
        # Room for all rows at once: blocks that are put together at the end would be there twice.
        kept = kept or [np.empty((n_rows, *part.shape[1:]), part.dtype) for part in parts]
        for whole, part in zip(kept, parts, strict=True):
            whole[place] = part
    return tuple(kept)

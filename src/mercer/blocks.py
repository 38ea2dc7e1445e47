"""One way to walk over rows, whatever holds them, with sums over blocks as the primitive.

The rows may be a NumPy array, a memory map or a torch tensor; anything that has `shape` and gives its rows by
slicing will do. Only the block at hand is converted, moved or copied, so that peak memory is what
`working_memory` says and not what the data happen to be.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.exceptions import invalid_parameter

WORKING_MEMORY = 64.0
"""MiB for the temporary arrays of one block; small blocks stay in the cache, and time hardly depends on it."""


def as_tensor(values: Any, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Tensor:
    """Return a floating-point tensor that shares memory with `values` where it can.

    Whole numbers and booleans become float64; floats keep their precision unless `dtype` says otherwise.
    """
    if device is not None and torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise invalid_parameter("device", str(device), ["cpu", None], "There is no CUDA here, or not in this torch.")
    if isinstance(values, Tensor):
        if dtype is None and not values.is_floating_point():
            dtype = torch.float64
        return values.to(device=device, dtype=dtype)
    array = np.asarray(values)
    if array.dtype.newbyteorder("=") not in (np.float32, np.float64):
        array = array.astype(np.float64)
    # torch shares memory with writable arrays of positive strides in native byte order only.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = np.array(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array).to(device=device, dtype=dtype)


def like_input(result: Tensor, *inputs: Any) -> Any:
    """Return `result` as NumPy if none of the `inputs` is a tensor: NumPy in, NumPy out."""
    if any(isinstance(values, Tensor) for values in inputs):
        return result
    return result.detach().cpu().numpy()


def rows_per_block(n_rows: int, bytes_per_row: int, working_memory: float = WORKING_MEMORY) -> int:
    """Return how many rows a block may hold, so that its temporaries stay within `working_memory` MiB."""
    return max(1, min(n_rows, int(working_memory * 2**20 // max(1, bytes_per_row))))


def row_slices(n_rows: int, rows: int) -> Iterator[slice]:
    """Yield the slices that cover `n_rows` rows in order, at most `rows` at a time."""
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def walk(
    arrays: Sequence[Any],
    *,
    bytes_per_row: int,
    working_memory: float = WORKING_MEMORY,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Iterator[tuple[slice, tuple[Tensor, ...]]]:
    """Yield each block's slice and the same rows of every array, as tensors.

    Parameters
    ----------
    arrays : sequence of array-likes, all with the same number of rows
    bytes_per_row : int
        What one row costs the caller in temporary arrays.
    working_memory : float, default=64.0
        MiB that the temporaries of one block may take.
    """
    n_rows = arrays[0].shape[0]
    if any(array.shape[0] != n_rows for array in arrays):
        raise ValueError(f"the arrays have {[array.shape[0] for array in arrays]} rows: all must have as many.")
    for rows in row_slices(n_rows, rows_per_block(n_rows, bytes_per_row, working_memory)):
        yield rows, tuple(as_tensor(array[rows], dtype=dtype, device=device) for array in arrays)


def sum_over_blocks(
    function: Callable[..., tuple[Tensor, ...]],
    *arrays: Any,
    bytes_per_row: int,
    working_memory: float = WORKING_MEMORY,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> tuple[Tensor, ...]:
    """Sum what `function` returns for each block of rows: the primitive behind every large-n computation.

    `function` gets the block of each array as a tensor and returns a tuple of tensors whose shapes do not depend
    on the block. They are added in order of the rows, so the result is reproducible.
    """
    totals: tuple[Tensor, ...] | None = None
    for _, blocks in walk(
        arrays, bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=dtype, device=device
    ):
        terms = function(*blocks)
        if totals is None:
            totals = tuple(term.clone() for term in terms)
        else:
            for total, term in zip(totals, terms, strict=True):
                total += term
    if totals is None:
        raise ValueError("there are no rows to sum over: the first array has shape[0] = 0, at least 1 is needed.")
    return totals

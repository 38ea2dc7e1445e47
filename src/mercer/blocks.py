"""One way to walk over rows, whatever holds them: what `mercer.rows` sums over, and kernels are evaluated by.

The rows may be a NumPy array, a memory map or a torch tensor; anything that has `shape` and gives its rows by
slicing will do, and `Rows` are those that are not in this process's memory. Only the block at hand is converted, moved
or copied, so that peak memory is what `working_memory` says and not what the data happen to be.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.exceptions import invalid_parameter

# Rows that are handed on together where nothing is worked out for them.
ROWS_A_PART = 65_536

WORKING_MEMORY = 64.0
"""MiB for the temporary arrays of one block; small blocks stay in the cache, and time hardly depends on it."""


class Rows(ABC):
    """Rows that are elsewhere: in files, or with other machines. What loops ask of them is here, and no more.

    Attributes
    ----------
    shape : tuple of int
        (n, d), or (n,) for a single column such as the target.
    dtype : numpy dtype
    names : tuple of str or None
        Of the columns.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...] | None = None

    @abstractmethod
    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        """Yield the rows of each slice in turn, as arrays of finite numbers; an error says where others are."""

    @abstractmethod
    def take(self, index: np.ndarray) -> np.ndarray:
        """Return the rows of these numbers, in the order asked for."""

    def in_order(self) -> Iterator[np.ndarray]:
        """Yield all rows, as many at a time as come together where they are."""
        return self.blocks(list(row_slices(len(self), ROWS_A_PART)))

    def parts(self, bounds: Sequence[slice]) -> Sequence[Any]:
        """Return the rows of each slice as something that a worker can be sent and reads there; else the rows."""
        return list(self.blocks(bounds))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """2, or 1 for a single column."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if not isinstance(rows, slice):
            return self.take(np.asarray(rows))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        if stop <= start:
            return np.empty((0, *self.shape[1:]), self.dtype)
        if stop - start == len(self):
            return self._all_rows()
        return next(iter(self.blocks([slice(start, stop)])))

    def _all_rows(self) -> np.ndarray:
        if self.dtype.kind in "SU":  # how long the longest text is, all of them say
            return np.concatenate(list(self.in_order()))
        # Room for all rows at once: parts that are put together at the end would be there twice.
        found, at = np.empty(self.shape, self.dtype), 0
        for part in self.in_order():
            found[at : at + len(part)] = part
            at += len(part)
        return found


class Reused:
    """Arrays that serve all blocks of a size: fresh memory for each would cost as much as the exponentials."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, like: Tensor, *shape: int) -> Tensor:
        """Return the array of that shape, with whatever it holds."""
        if shape not in self._arrays:
            self._arrays[shape] = like.new_empty(shape)
        return self._arrays[shape]


def as_tensor(values: Any, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Tensor:
    """Return a floating-point tensor that shares memory with `values` where it can.

    Whole numbers and booleans become float64; floats keep their precision unless `dtype` says otherwise.
    """
    if device is not None and torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise invalid_parameter("device", str(device), "'cpu' or None", "There is no CUDA here, or not in this torch.")
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
    # Any memory will do, an infinite one too: the quotient is a number of rows only once it is bounded.
    return max(1, int(min(n_rows, working_memory * 2**20 / max(1, bytes_per_row))))


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
    arrays : sequence of array-likes or Rows, all with the same number of rows
    bytes_per_row : int
        What one row costs the caller in temporary arrays.
    working_memory : float, default=64.0
        MiB that the temporaries of one block may take.
    """
    rows = rows_per_block(common_length(arrays), bytes_per_row, working_memory)
    yield from walk_by(arrays, rows, dtype=dtype, device=device)


def walk_by(
    arrays: Sequence[Any],
    rows: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    done: int = 0,
) -> Iterator[tuple[slice, tuple[Tensor, ...]]]:
    """Yield the same as `walk` in blocks of so many rows, without the first `done` of them."""
    bounds = list(row_slices(common_length(arrays), rows))[done:]
    for place, *parts in zip(bounds, *(blocks_of(array, bounds) for array in arrays), strict=True):
        yield place, tuple(as_block(part, dtype, device) for part in parts)


def blocks_of(array: Any, bounds: Sequence[slice]) -> Iterator[Any]:
    """Return the blocks of an array, or of rows that are elsewhere, one after another."""
    return array.blocks(bounds) if isinstance(array, Rows) else (array[rows] for rows in bounds)


def as_block(part: Any, dtype: torch.dtype | None, device: torch.device | str | None) -> Tensor:
    """Return a block as a tensor; a column of whole numbers, which are places of rows or classes, stays that."""
    if part.ndim == 1 and str(part.dtype).removeprefix("torch.") == "int64":
        return torch.as_tensor(part, device=device)
    return as_tensor(part, dtype=dtype, device=device)


def common_length(arrays: Sequence[Any]) -> int:
    """Return how many rows all the arrays have."""
    n_rows = arrays[0].shape[0]
    if any(array.shape[0] != n_rows for array in arrays):
        raise ValueError(f"the arrays have {[array.shape[0] for array in arrays]} rows: all must have as many.")
    return n_rows

"""Rows in blocks, whatever holds the rows: `mercer.rows` sums over such blocks, and kernels are evaluated on them.

The rows may be a NumPy array, a memory map, a torch tensor, or anything else that has a `shape` and returns rows when
it is sliced. `Rows` are rows that are not in the memory of this process. Only the current block is converted, moved or
copied, so that peak memory depends on `working_memory` and not on the size of the data.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.exceptions import invalid_parameter

# How many rows are passed on together where nothing is computed from them.
ROWS_A_PART = 65_536

WORKING_MEMORY = 64.0
"""MiB for the temporary arrays of one block. Small blocks stay in the cache; the time hardly depends on the size."""


class Rows(ABC):
    """Rows that are elsewhere: in files, or on other machines. A subclass defines `blocks` and `take`.

    Attributes
    ----------
    shape : tuple of int
        (n, d), or (n,) for a single column such as the target.
    dtype : numpy dtype
    names : tuple of str or None
        The names of the columns, if they have any.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...] | None = None

    @abstractmethod
    def blocks(self, bounds: Sequence[slice]) -> Iterator[np.ndarray]:
        """Yield the rows of each slice in turn, as arrays of finite numbers; an error says where a number is not."""

    @abstractmethod
    def take(self, index: np.ndarray) -> np.ndarray:
        """Return the rows with the row numbers in `index`, in the order of `index`."""

    def in_order(self) -> Iterator[np.ndarray]:
        """Yield all rows in order, in parts of a size that suits the place where they are stored."""
        return self.blocks(list(row_slices(len(self), ROWS_A_PART)))

    def parts(self, bounds: Sequence[slice]) -> Sequence[Any]:
        """Return, for each slice, an object that a worker can read the rows from; by default the rows themselves."""
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
            return self.take(row_numbers(rows, len(self)))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        if stop <= start:
            return np.empty((0, *self.shape[1:]), self.dtype)
        if stop - start == len(self):
            return self._all_rows()
        return next(iter(self.blocks([slice(start, stop)])))

    def _all_rows(self) -> np.ndarray:
        if self.dtype.kind in "SU":  # the length of the longest text is known only after all of them were read
            return np.concatenate(list(self.in_order()))
        # One array is allocated for all rows: parts that are concatenated at the end would take the memory twice.
        all_rows, at = np.empty(self.shape, self.dtype), 0
        for part in self.in_order():
            all_rows[at : at + len(part)] = part
            at += len(part)
        return all_rows


def row_numbers(index: Any, n_rows: int) -> np.ndarray:
    """Return an index of rows as numbers from 0 on: a mask, or numbers, of which negative ones count from the end."""
    index = np.asarray(index)
    if index.dtype == bool:
        if index.shape != (n_rows,):
            raise IndexError(f"a mask of shape {index.shape} was given, and there are {n_rows} rows.")
        return np.flatnonzero(index)
    if index.size and (index.min() < -n_rows or index.max() >= n_rows):
        raise IndexError(f"rows {index.min()} to {index.max()} were asked for, and there are {n_rows}.")
    return np.where(index < 0, index + n_rows, index)


class Reused:
    """Arrays that all blocks of one shape share: new memory for each block would take as long as the exponentials."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, like: Tensor, *shape: int) -> Tensor:
        """Return the array of that shape, whose entries are left over from its last use."""
        if shape not in self._arrays:
            self._arrays[shape] = like.new_empty(shape)
        return self._arrays[shape]


def as_tensor(values: Any, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Tensor:
    """Return a floating-point tensor that shares memory with `values` if that is possible.

    Whole numbers and booleans become float64; floats keep their precision unless `dtype` is given.
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
    # torch can share memory only with writable arrays in native byte order that have no negative strides.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = np.array(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array).to(device=device, dtype=dtype)


def like_input(result: Tensor, *inputs: Any) -> Any:
    """Return `result` as a NumPy array if none of the `inputs` is a tensor: NumPy in, NumPy out."""
    if any(isinstance(values, Tensor) for values in inputs):
        return result
    return result.detach().cpu().numpy()


def rows_per_block(n_rows: int, bytes_per_row: int, working_memory: float = WORKING_MEMORY) -> int:
    """Return how many rows a block may hold, so that its temporaries stay within `working_memory` MiB."""
    # `working_memory` may be infinite, so the quotient is bounded before it is made a whole number.
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
    """Yield the slice of each block, and the rows of every array in that slice as tensors.

    Parameters
    ----------
    arrays : sequence of array-likes or Rows, all with the same number of rows
    bytes_per_row : int
        How many bytes of temporary arrays the caller needs for each row.
    working_memory : float, default=64.0
        MiB that the temporary arrays of one block may take.
    dtype, device : optional
        Of the tensors; by default those of each array.
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
    """Yield the same as `walk`, in blocks of `rows` rows; the first `done` blocks are skipped."""
    bounds = list(row_slices(common_length(arrays), rows))[done:]
    for place, *parts in zip(bounds, *(blocks_of(array, bounds) for array in arrays), strict=True):
        yield place, tuple(as_block(part, dtype, device) for part in parts)


def blocks_of(array: Any, bounds: Sequence[slice]) -> Iterator[Any]:
    """Return an iterator over the blocks of an array, or of rows that are elsewhere."""
    return array.blocks(bounds) if isinstance(array, Rows) else (array[rows] for rows in bounds)


def as_block(part: Any, dtype: torch.dtype | None, device: torch.device | str | None) -> Tensor:
    """Return a block as a tensor of floats; a column of int64, which numbers rows or classes, keeps its dtype."""
    if part.ndim == 1 and str(part.dtype).removeprefix("torch.") == "int64":
        return torch.as_tensor(part, device=device)
    return as_tensor(part, dtype=dtype, device=device)


def common_length(arrays: Sequence[Any]) -> int:
    """Return the number of rows, which must be the same for all the arrays."""
    n_rows = arrays[0].shape[0]
    if any(array.shape[0] != n_rows for array in arrays):
        raise ValueError(f"the arrays have {[array.shape[0] for array in arrays]} rows: all must have as many.")
    return n_rows

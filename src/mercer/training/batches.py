"""The batches of an epoch: its rows in random order, divided into parts of equal size."""

import torch
from torch import Tensor

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import generator_of


def count_batches(n_rows: int, batch_size: int, min_batch: int = 1) -> int:
    """Return how many batches an epoch has: as few as keep each within `batch_size` rows.

    All batches have the same size, up to one row, so that the last one is not smaller. Every row is used in every
    epoch, and no loss is computed on a few rows only, whose covariances would be noise. 600 rows and a `batch_size` of
    256 make three batches of 200.

    Parameters
    ----------
    n_rows, batch_size : int
    min_batch : int, default=1
        The number of rows that the loss needs at least. If both limits cannot hold, as for 3 rows with a `batch_size`
        of 2 and a `min_batch` of 2, batches are larger than `batch_size`.
    """
    check_count("n_rows", n_rows)
    check_count("batch_size", batch_size)
    check_count("min_batch", min_batch)
    if batch_size < min_batch:
        raise invalid_parameter("batch_size", batch_size, f"at least {min_batch}", "The loss compares rows of a batch.")
    if n_rows < min_batch:
        raise ValueError(f"there are {n_rows} rows to learn from: a batch must have at least {min_batch}.")
    return min(-(-n_rows // batch_size), n_rows // min_batch)


def epoch_batches(n_rows: int, n_batches: int, seed: int, epoch: int) -> tuple[Tensor, ...]:
    """Return the batches of an epoch as tensors of row numbers, on the CPU; they depend on the arguments alone."""
    order = torch.randperm(n_rows, generator=generator_of(seed, "rows", epoch))
    return torch.tensor_split(order, n_batches)

"""The gradients of rows by one set of weights, in full or as factors, and the inner products between two sides."""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block


class Part(ABC):
    """The gradients G(x_i) of the head by one set of weights for n rows, stored in full or as factors.

    Parameters
    ----------
    *tensors : tensors
        What is stored; the first axis of each has length n.
    """

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def with_tensors(self, *tensors: Tensor) -> Self:
        """Return a part for the same weights and other rows, with their tensors."""
        return type(self)(*tensors)

    def __getitem__(self, rows: slice) -> Self:
        return self.with_tensors(*(tensor[rows] for tensor in self.tensors))

    def empty(self, n_rows: int) -> Self:
        """Return a part for the same weights and `n_rows` rows, with uninitialized tensors."""
        return self.with_tensors(*(tensor.new_empty((n_rows, *tensor.shape[1:])) for tensor in self.tensors))

    @property
    def bytes_per_row(self) -> int:
        """The memory of one row, in bytes."""
        return sum(tensor[:1].numel() * tensor.element_size() for tensor in self.tensors)

    @abstractmethod
    def add_products(self, other: Self, out: Tensor) -> None:
        """Add the inner products <G(x_i), G(z_j)> to `out`, of shape (n, m)."""

    @abstractmethod
    def squares(self) -> Tensor:
        """Return the squared norms |G(x_i)|^2, of shape (n,)."""


class Features(Part):
    """G(x_i) itself, or a random projection of it, as one flat row for each x_i."""

    def add_products(self, other: "Features", out: Tensor) -> None:
        (x,), (z,) = self.tensors, other.tensors
        out.addmm_(x, z.T)

    def squares(self) -> Tensor:
        return torch.linalg.vector_norm(self.tensors[0], dim=1).square_()


def tiles(x: Part, z: Part, bytes_per_pair: int) -> list[tuple[slice, slice]]:
    """Divide all pairs of rows into tiles that fit the working memory; return (slice of x, slice of z) for each."""
    pairs = max(1, int(WORKING_MEMORY * 2**20 // max(1, bytes_per_pair)))
    columns = min(len(z), max(1, int(pairs**0.5)) if len(x) * len(z) > pairs else len(z))
    rows = rows_per_block(len(x), bytes_per_pair * columns)
    return [(i, j) for j in row_slices(len(z), columns) for i in row_slices(len(x), rows)]

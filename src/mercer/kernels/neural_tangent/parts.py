"""What is kept of each row's gradient by one set of weights, and the inner products of two such sets of rows."""

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, row_slices, rows_per_block


class Part(ABC):
    """The gradients G(x_i) of the head by one set of weights, for n rows, as they are or in factors.

    Parameters
    ----------
    *tensors : tensors with one row a sample
    """

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def with_tensors(self, *tensors: Tensor) -> Self:
        """Return a part of the same weights, of other rows."""
        return type(self)(*tensors)

    def __getitem__(self, rows: slice) -> Self:
        return self.with_tensors(*(tensor[rows] for tensor in self.tensors))

    def empty(self, n_rows: int) -> Self:
        """Return a part of the same weights for so many rows, with room for their numbers."""
        return self.with_tensors(*(tensor.new_empty((n_rows, *tensor.shape[1:])) for tensor in self.tensors))

    @property
    def bytes_per_row(self) -> int:
        """How much memory a row takes."""
        return sum(tensor[:1].numel() * tensor.element_size() for tensor in self.tensors)

    @abstractmethod
    def add_products(self, other: Self, out: Tensor) -> None:
        """Add <G(x_i), G(z_j)> to `out`, of shape (n, m)."""

    @abstractmethod
    def squares(self) -> Tensor:
        """Return |G(x_i)|^2, of shape (n,)."""


class Features(Part):
    """G(x_i) itself, or a random projection of it, as a row of numbers."""

    def add_products(self, other: "Features", out: Tensor) -> None:
        (x,), (z,) = self.tensors, other.tensors
        out.addmm_(x, z.T)

    def squares(self) -> Tensor:
        return torch.linalg.vector_norm(self.tensors[0], dim=1).square_()


def tiles(x: Part, z: Part, bytes_per_pair: int) -> list[tuple[slice, slice]]:
    """Return slices of the rows of both sides whose pairs fit the working memory, covering all pairs."""
    pairs = max(1, int(WORKING_MEMORY * 2**20 // max(1, bytes_per_pair)))
    columns = min(len(z), max(1, int(pairs**0.5)) if len(x) * len(z) > pairs else len(z))
    rows = rows_per_block(len(x), bytes_per_pair * columns)
    return [(i, j) for j in row_slices(len(z), columns) for i in row_slices(len(x), rows)]

"""Gradients by parameters other than matrices: biases, the scales of norms, and tables of embeddings."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Shape = tuple[int, ...]


def summed_to(values: Tensor, shape: Shape) -> Tensor:
    """Sum values of shape (n, ...) over the axes along which a parameter of `shape` is repeated; return (n, size)."""
    shape = (1,) * (values.ndim - 1 - len(shape)) + shape
    repeated = [i + 1 for i, size in enumerate(shape) if size == 1]
    return (values.sum(dim=repeated, keepdim=True) if repeated else values).flatten(1)


class Shift(NamedTuple):
    """A parameter b that is added, a -> a + b, and repeated over positions p. Its gradient is G = sum_p g_p."""

    shape: Shape

    def seen(self, a: Tensor) -> Tensor:
        """Return the part of the input that the gradient depends on; here the input itself, which is not used."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, flat; the first axis of a and g is the rows."""
        return summed_to(g, self.shape)


class Scale(NamedTuple):
    """A parameter w that multiplies, a -> w * a' with a' = normalize(a). Its gradient is G = sum_p g_p * a'_p.

    For the scales of norms, and for parameters that multiply the input itself.
    """

    shape: Shape
    normalize: Callable[[Tensor], Tensor]

    def seen(self, a: Tensor) -> Tensor:
        """Return the normalized input."""
        return self.normalize(a)

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, flat, from normalized inputs; the first axis of a and g is the rows."""
        return summed_to(g * a, self.shape)


class Lookup(NamedTuple):
    """The table of an embedding, with one row for each token.

    The gradient of a token's row is the sum of g_p over the positions p that have the token.
    """

    n_tokens: int
    padding: int | None

    def seen(self, a: Tensor) -> Tensor:
        """Return the tokens."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each sample, flat, from its tokens; the first axis of a and g is the samples."""
        n, width = len(a), g.shape[-1]
        tokens = a.reshape(n, -1).to(torch.long)
        table = torch.zeros((n, self.n_tokens, width), dtype=g.dtype, device=g.device)
        table.scatter_add_(1, tokens[..., None].expand(-1, -1, width), g.reshape(n, -1, width))
        if self.padding is not None:
            table[:, self.padding] = 0.0
        return table.flatten(1)

"""Parameters with one number a channel or a token, whose gradients are short: biases, scales, embeddings."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Shape = tuple[int, ...]


def summed_to(values: Tensor, shape: Shape) -> Tensor:
    """Sum values of shape (n, ...) over the axes along which a parameter of that shape is repeated; (n, size)."""
    shape = (1,) * (values.ndim - 1 - len(shape)) + shape
    repeated = [i + 1 for i, size in enumerate(shape) if size == 1]
    return (values.sum(dim=repeated, keepdim=True) if repeated else values).flatten(1)


class Shift(NamedTuple):
    """b in a + b, b of a shape that is repeated over positions: dG = sum_p g_p."""

    shape: Shape

    def seen(self, a: Tensor) -> Tensor:
        """Return what of the input counts."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, from inputs and gradients with n in front."""
        return summed_to(g, self.shape)


class Scale(NamedTuple):
    """w in w * a', a' the input as `normalize` makes it: dG = sum_p g_p * a'_p. For norms, and for plain factors."""

    shape: Shape
    normalize: Callable[[Tensor], Tensor]

    def seen(self, a: Tensor) -> Tensor:
        """Return the normalized input."""
        return self.normalize(a)

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, from normalized inputs and gradients with n in front."""
        return summed_to(g * a, self.shape)


class Lookup(NamedTuple):
    """The table of an embedding, a row a token: dG of a token is the sum of g_p over the positions that have it."""

    n_tokens: int
    padding: int | None

    def seen(self, a: Tensor) -> Tensor:
        """Return the tokens."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row of samples, from tokens and gradients with n in front."""
        n, width = len(a), g.shape[-1]
        tokens = a.reshape(n, -1).to(torch.long)
        table = torch.zeros((n, self.n_tokens, width), dtype=g.dtype, device=g.device)
        table.scatter_add_(1, tokens[..., None].expand(-1, -1, width), g.reshape(n, -1, width))
        if self.padding is not None:
            table[:, self.padding] = 0.0
        return table.flatten(1)

"""Random projections of the gradient by a matrix of weights, G = sum_p g_p u_p^T, before it is formed."""

from typing import NamedTuple

import torch
from torch import Tensor


class Projection(NamedTuple):
    """S^T G T for random S and T: inner products of what comes out are, on average, those of what goes in.

    Attributes
    ----------
    left : tensor of shape (c_out, s) or None
        S; None is the identity.
    right : tensor of shape (c_in, t) or None
        T; None is the identity.
    """

    left: Tensor | None
    right: Tensor | None

    def apply(self, u: Tensor, g: Tensor) -> Tensor:
        """Return the projected gradients, flat, from u of shape (n, P, c_in) and g of shape (n, P, c_out)."""
        v = g if self.left is None else g @ self.left
        u = u if self.right is None else u @ self.right
        return torch.bmm(v.mT, u).flatten(1)


def drawn_projection(c_out: int, c_in: int, size: int, generator: torch.Generator, like: Tensor) -> Projection:
    """Return a projection of (c_out, c_in) matrices to at most `size` numbers, with normal entries."""
    s, t = sides(c_out, c_in, size)
    return Projection(_normal(c_out, s, generator, like), _normal(c_in, t, generator, like))


def sides(c_out: int, c_in: int, size: int) -> tuple[int, int]:
    """Return how many rows and columns are left of a matrix, about equal, so that they hold at most `size` numbers."""
    s = min(c_out, max(1, int(size**0.5)))
    t = min(c_in, max(1, size // s))
    return min(c_out, max(1, size // t)), t


def _normal(n: int, k: int, generator: torch.Generator, like: Tensor) -> Tensor | None:
    if k >= n:
        return None
    return (torch.randn((n, k), generator=generator, dtype=torch.float64) / k**0.5).to(like)

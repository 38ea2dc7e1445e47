"""Gradients by the weights of dense layers, a -> W a: of rows, of tokens, and inside attention."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, row_slices
from mercer.kernels.neural_tangent.parts import Part, tiles

# Cost of a pair of positions beside the two inner products, in multiplications: the products are read, multiplied and
# summed.
OVERHEAD = 16


class Dense(NamedTuple):
    """The weights W of a dense layer a_p -> W a_p, whose gradient is G = sum_p g_p a_p^T, of shape (c_out, c_in).

    g_p is the gradient of the head by the output at position p.
    """

    def seen(self, a: Tensor) -> Tensor:
        """Return the part of the input that the gradient depends on: the whole input."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient G of each row, flat, of shape (n, c_out c_in); the first axis of a and g is the rows."""
        return torch.bmm(positions(g).mT, positions(a)).flatten(1)


def positions(values: Tensor) -> Tensor:
    """Return values of shape (n, ..., c) as (n, P, c), with all positions on one axis."""
    return values.reshape(len(values), -1, values.shape[-1])


class DenseFactors(Part):
    """G = sum_p g_p a_p^T, kept as its factors: a of shape (n, P, c_in) and g of shape (n, P, c_out).

    The inner product <G, G'> is computed in the cheaper of two ways. As sum_pq (a_p . a'_q)(g_p . g'_q) it costs
    P^2 (c_in + c_out) multiplications for a pair of rows, and G is never formed. As the inner product of the two
    matrices it costs c_in c_out for a pair, once these are formed. For a dense layer of rows, P = 1, the first way
    takes thousands of multiplications instead of millions.
    """

    def add_products(self, other: "DenseFactors", out: Tensor) -> None:
        (a, g), (b, h) = self.tensors, other.tensors
        n_positions, c_in, c_out = a.shape[1], a.shape[2], g.shape[2]
        squared = n_positions * b.shape[1]
        by_matrices = c_in * c_out * (1 + n_positions / len(a) + b.shape[1] / len(b))
        if squared * (c_in + c_out + OVERHEAD) > by_matrices:
            self._add_by_matrices(other, out)
            return
        for rows, columns in tiles(self, other, 2 * squared * a.element_size()):
            grams = products(a[rows], b[columns]).mul_(products(g[rows], h[columns]))
            out[rows, columns] += grams if squared == 1 else summed(grams, n_positions, b.shape[1])

    def _add_by_matrices(self, other: "DenseFactors", out: Tensor) -> None:
        """Add the inner products of the matrices G, formed for as many outputs at a time as fit the working memory."""
        (a, g), (b, h) = self.tensors, other.tensors
        bytes_per_output = (len(a) + len(b)) * a.shape[2] * a.element_size()
        step = max(1, int(WORKING_MEMORY * 2**20 // bytes_per_output))
        for outputs in row_slices(g.shape[2], step):
            x = torch.bmm(g[..., outputs].mT, a).flatten(1)
            out.addmm_(x, torch.bmm(h[..., outputs].mT, b).flatten(1).T)

    def squares(self) -> Tensor:
        a, g = self.tensors
        if a.shape[1] == 1:
            return a.square().sum(dim=(1, 2)) * g.square().sum(dim=(1, 2))
        return (torch.bmm(a, a.mT) * torch.bmm(g, g.mT)).sum(dim=(1, 2))


def products(x: Tensor, z: Tensor) -> Tensor:
    """Return the inner products between all positions of two sets of rows, of shape (n P, m Q)."""
    return x.flatten(0, 1) @ z.flatten(0, 1).T


def summed(grams: Tensor, p: int, q: int) -> Tensor:
    """Sum over the positions of both sides, (n p, m q) -> (n, m)."""
    return grams.view(len(grams) // p, p, -1, q).sum(dim=(1, 3))

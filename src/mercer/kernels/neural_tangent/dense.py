"""Layers that multiply by a matrix, W a: dense layers, on rows or on tokens, and the linear parts of attention."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, row_slices
from mercer.kernels.neural_tangent.parts import Part, tiles

# A position's square costs this many multiplications beside the two products: it is read, multiplied and summed.
OVERHEAD = 16


class Dense(NamedTuple):
    """W in W a_p, at positions p: dG = sum_p g_p a_p^T, of shape (c_out, c_in)."""

    def seen(self, a: Tensor) -> Tensor:
        """Return what of the input counts."""
        return a

    def gradient(self, a: Tensor, g: Tensor) -> Tensor:
        """Return the gradient of each row, of shape (n, c_out c_in), from inputs and gradients with n in front."""
        return torch.bmm(positions(g).mT, positions(a)).flatten(1)


def positions(values: Tensor) -> Tensor:
    """Return values of shape (n, ..., c) as (n, P, c)."""
    return values.reshape(len(values), -1, values.shape[-1])


class DenseFactors(Part):
    """G = sum_p g_p a_p^T by its factors: a of shape (n, P, c_in) and g of shape (n, P, c_out).

    <G, G'> is sum_pq (a_p . a'_q)(g_p . g'_q), which costs P^2 (c_in + c_out) a pair and never forms G; or the inner
    product of the two matrices, which costs c_in c_out a pair once they are formed. The cheaper one is taken. For
    dense layers on rows, P = 1, that is the first: thousands of multiplications in the place of millions.
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
        """Form the matrices for some of the outputs at a time, as many as fit the working memory."""
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
    """Return the inner products of all positions of all rows, of shape (n P, m Q)."""
    return x.flatten(0, 1) @ z.flatten(0, 1).T


def summed(grams: Tensor, p: int, q: int) -> Tensor:
    """Return the sums over the positions of both sides, (n p, m q) -> (n, m)."""
    return grams.view(len(grams) // p, p, -1, q).sum(dim=(1, 3))

"""Random projections of a layer's inputs: the gradient by its weights, G = sum_p g_p u_p^T, becomes a small G T."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from mercer.kernels.neural_tangent.convolution import Convolution, crop
from mercer.kernels.neural_tangent.dense import positions
from mercer.kernels.neural_tangent.tracing import Kind


class Projection(NamedTuple):
    """G T for a random T: inner products of what comes out are, on average, those of what goes in.

    The inputs are projected, not the gradients g of the outputs: rows agree in these far more than in the inputs, so
    that to lose some of them costs more (ResNet-18, 16 numbers: 8 % of the kernel against 2.5 %). Each place of a
    convolution's kernel has directions of its own, so that pixels are projected, not patches: for a kernel of 3 x 3
    that is a ninth of the work for the same error.

    Attributes
    ----------
    matrix : tensor of shape (places, c_in, t / places)
        T, in blocks along its diagonal: a block a place of the kernel; one block for dense layers.
    """

    matrix: Tensor

    def gradient(self, kind: Kind, a: Tensor, g: Tensor) -> Tensor:
        """Return G T of each row, flat, from the inputs that a layer has seen and the gradients of its outputs."""
        if not isinstance(kind, Convolution):
            return torch.bmm(positions(g).mT, positions(a) @ self.matrix[0]).flatten(1)
        n, images = len(a), a.reshape(-1, *a.shape[-3:])
        places, c_in, width = self.matrix.shape
        v = g.reshape(len(images), -1, g.shape[-2] if g.ndim >= 4 else 1, g.shape[-1])
        # A product with a matrix at each pixel, and zeros around, may change their order.
        pixels = (self.matrix.mT.reshape(places * width, c_in) @ images.flatten(2)).unflatten(2, images.shape[2:])
        padded = functional.pad(pixels, kind.around)
        u = torch.cat(
            [
                crop(padded[:, i * width : (i + 1) * width], kind, place, tuple(v.shape[2:]))
                for i, place in enumerate(kind.offsets())
            ],
            dim=1,
        )
        G = torch.bmm(v.flatten(2), u.flatten(2).mT)
        return G.flatten(1).view(n, len(images) // n, -1).sum(dim=1)


def drawn_projection(kind: Kind, c_in: int, n_projections: int, generator: torch.Generator, like: Tensor) -> Projection:
    """Return a projection of a layer's inputs to about so many numbers, with normal entries."""
    places = kind.kernel[0] * kind.kernel[1] if isinstance(kind, Convolution) else 1
    width = max(1, round(n_projections / places))
    drawn = torch.randn((places, c_in // places, width), generator=generator, dtype=torch.float64)
    return Projection((drawn / width**0.5).to(like))

"""Random projections of a layer's inputs, which replace the gradient by its weights, G, by a smaller matrix G T."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from mercer.kernels.neural_tangent.convolution import Convolution, crop
from mercer.kernels.neural_tangent.dense import positions
from mercer.kernels.neural_tangent.tracing import Kind


class Projection(NamedTuple):
    """A random projection G T of the gradient G = sum_p g_p u_p^T by a layer's weights.

    The inner products of projected gradients are, on average, those of the gradients themselves.

    The inputs u are projected, not the gradients g by the outputs. Different rows have more similar g than u, so that
    projecting g gives a larger error (ResNet-18, 16 numbers: 8 % of the kernel against 2.5 %). Each entry of a
    convolution's kernel has random directions of its own. This way pixels are projected instead of patches: for a
    kernel of 3 x 3 that is a ninth of the work for the same error.

    Attributes
    ----------
    matrix : tensor of shape (places, c_in, t / places)
        The diagonal blocks of the block-diagonal matrix T: one for each entry of a convolution's kernel, or a single
        one for dense layers.
    """

    matrix: Tensor

    def gradient(self, kind: Kind, a: Tensor, g: Tensor) -> Tensor:
        """Return G T of each row, flat, from the inputs a of a layer and the gradients g by its outputs."""
        if not isinstance(kind, Convolution):
            return torch.bmm(positions(g).mT, positions(a) @ self.matrix[0]).flatten(1)
        n, images = len(a), a.reshape(-1, *a.shape[-3:])
        places, c_in, width = self.matrix.shape
        v = g.reshape(len(images), -1, g.shape[-2] if g.ndim >= 4 else 1, g.shape[-1])
        # Projecting pixels and padding with zeros commute, so the smaller projected images are padded.
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
    """Draw a projection of a layer's inputs to about `n_projections` numbers, with normal entries."""
    places = kind.kernel[0] * kind.kernel[1] if isinstance(kind, Convolution) else 1
    width = max(1, round(n_projections / places))
    drawn = torch.randn((places, c_in // places, width), generator=generator, dtype=torch.float64)
    return Projection((drawn / width**0.5).to(like))

"""Scaling of vectors to length 1, for vectors of any size."""

import torch
from torch import Tensor


def unit(z: Tensor, dim: int) -> Tensor:
    """Return z / |z| along `dim`, and 0 where |z| = 0.

    Vectors are first divided by their largest entry, so that no square overflows or vanishes, even for a float32 vector
    of size 1e30. At 0 there is no derivative; the derivative of z itself is used there, which is finite.
    """
    tiny = torch.finfo(z.dtype).tiny
    # The result does not depend on the scale, so the gradient stays correct if the scale counts as a constant.
    scale = z.detach().abs().amax(dim=dim, keepdim=True)
    z = z / torch.where(scale > tiny, scale, 1.0)
    norm = torch.linalg.vector_norm(z, dim=dim, keepdim=True)
    return z / torch.where(norm > 0, norm, 1.0)

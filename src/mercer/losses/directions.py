"""Vectors scaled to length 1, whatever their size was."""

import torch
from torch import Tensor


def unit(z: Tensor, dim: int) -> Tensor:
    """Return z / |z| along `dim`, and 0 where |z| = 0.

    Vectors are first divided by their largest entry, so that no square overflows or vanishes: a float32 vector of
    size 1e30 has a direction as well. At 0 there is no derivative; z itself is differentiated there, which is finite.
    """
    tiny = torch.finfo(z.dtype).tiny
    # The result does not depend on the scale, so that nothing is lost by holding it constant.
    scale = z.detach().abs().amax(dim=dim, keepdim=True)
    z = z / torch.where(scale > tiny, scale, 1.0)
    norm = torch.linalg.vector_norm(z, dim=dim, keepdim=True)
    return z / torch.where(norm > 0, norm, 1.0)

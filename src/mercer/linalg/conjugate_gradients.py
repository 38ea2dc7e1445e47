"""Conjugate gradients for several right sides at once, with a preconditioner."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.exceptions import ConvergenceWarning, warn_user


class Solution(NamedTuple):
    """What an iterative solver found, and how near it came."""

    x: Tensor
    converged: bool
    steps: int
    relative_residual: float


def conjugate_gradients(
    multiply: Callable[[Tensor], Tensor],
    B: Tensor,
    *,
    precondition: Callable[[Tensor], Tensor] | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 100,
    warn: bool = True,
) -> Solution:
    """Solve A X = B for a symmetric positive definite A that is known by its products alone.

    Each column is its own problem with its own step lengths; all share the products with A.

    Parameters
    ----------
    multiply : callable
        V -> A V for V of shape (n, k).
    B : tensor of shape (n,) or (n, k)
    precondition : callable, optional
        R -> P^-1 R with P near A and symmetric positive definite.
    tolerance : float, default=1e-6
        Stop when the residual of every column is below this, relative to the column of B.
    max_steps : int, default=100
    warn : bool, default=True
        Give a ConvergenceWarning when `max_steps` did not suffice.
    """
    shape = B.shape
    # Scaled to 1, so that no square overflows or vanishes. A zero right side has the solution zero.
    scale = B.reshape(len(B), -1).abs().amax(dim=0)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    B = B.reshape(len(B), -1) / scale
    precondition = precondition or (lambda R: R)
    norms = torch.linalg.vector_norm(B, dim=0).clamp(min=1.0)

    X = torch.zeros_like(B)
    R = B.clone()
    Z = precondition(R)
    D = Z.clone()
    rz = torch.linalg.vecdot(R, Z, dim=0)
    steps, residual = 0, _largest(R, norms)
    while residual > tolerance and steps < max_steps:
        AD = multiply(D)
        step = _divide(rz, torch.linalg.vecdot(D, AD, dim=0))
        X += step * D
        R -= step * AD
        Z = precondition(R)
        rz_next = torch.linalg.vecdot(R, Z, dim=0)
        D = Z + _divide(rz_next, rz) * D
        rz = rz_next
        steps, residual = steps + 1, _largest(R, norms)
    converged = residual <= tolerance
    if warn and not converged:
        warn_user(
            f"conjugate gradients stopped after max_steps={max_steps} at a relative residual of {residual:.1e}, above "
            f"tolerance={tolerance:g}. More steps, a larger ridge or a better preconditioner would help.",
            ConvergenceWarning,
        )
    return Solution((X * scale).reshape(shape), converged, steps, residual)


def _largest(R: Tensor, norms: Tensor) -> float:
    residual = (torch.linalg.vector_norm(R, dim=0) / norms).max().item()
    return residual if residual == residual else float("inf")  # NaN counts as far away


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, and 0 for columns that are solved already."""
    return torch.where(b > 0, a / torch.where(b > 0, b, torch.ones_like(b)), torch.zeros_like(a))

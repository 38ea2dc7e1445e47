"""Conjugate gradients for several right sides at once, with a preconditioner."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.exceptions import ConvergenceWarning, warn_user


class Solution(NamedTuple):
    """What an iterative solver of A X = B found.

    Attributes
    ----------
    x : tensor of the shape of B
        The last iterate, whether the solver converged or not.
    converged : bool
        Whether `relative_residual` is at most the tolerance.
    steps : int
        How many steps were taken; each multiplies by A once.
    relative_residual : float
        |B - A X| relative to |B|, the largest over the columns. Infinite if the residual has a NaN.
    """

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
    """Solve A X = B for a symmetric positive definite A of which only products with vectors are known.

    Each column of B is a problem of its own, with its own step lengths; one product with A serves all columns.

    Parameters
    ----------
    multiply : callable
        V -> A V for V of shape (n, k).
    B : tensor of shape (n,) or (n, k)
    precondition : callable, optional
        R -> P^-1 R, where P is symmetric positive definite and approximates A. The identity by default.
    tolerance : float, default=1e-6
        Stop when the residual of every column is at most this, relative to the column of B.
    max_steps : int, default=100
    warn : bool, default=True
        Whether to give a ConvergenceWarning if `max_steps` steps did not reach the tolerance.

    Returns
    -------
    Solution

    Notes
    -----
    Each step costs one product with A, one call of `precondition` and O(nk) operations beside these. The residual is
    the one that is updated from step to step, not B - A X computed again.
    """
    shape = B.shape
    # The columns are scaled to a largest entry of 1, so that no square overflows or underflows. A column of zeros is
    # left as it is: its solution is zero.
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
    steps, residual = 0, _largest_residual(R, norms)
    while residual > tolerance and steps < max_steps:
        AD = multiply(D)
        curvature = torch.linalg.vecdot(D, AD, dim=0)
        if not bool(((curvature > 0) & (_relative(R, norms) > tolerance)).any()):
            break  # no column that is not solved yet can be improved: A is not positive definite, or a product is NaN
        step = _divide(rz, curvature)
        X += step * D
        R -= step * AD
        Z = precondition(R)
        rz_next = torch.linalg.vecdot(R, Z, dim=0)
        D = Z + _divide(rz_next, rz) * D
        rz = rz_next
        steps, residual = steps + 1, _largest_residual(R, norms)
    converged = residual <= tolerance
    if warn and not converged:
        if steps < max_steps:
            reason = f"{steps} steps"
            remedy = "The matrix is not positive definite, or its products are not finite."
        else:
            reason, remedy = (
                f"max_steps={max_steps}",
                "More steps, a larger ridge or a better preconditioner would help.",
            )
        warn_user(
            f"conjugate gradients stopped after {reason} at a relative residual of {residual:.1e}, above "
            f"tolerance={tolerance:g}. {remedy}",
            ConvergenceWarning,
        )
    return Solution((X * scale).reshape(shape), converged, steps, residual)


def _relative(R: Tensor, norms: Tensor) -> Tensor:
    """Return the relative residual of each column."""
    return torch.linalg.vector_norm(R, dim=0) / norms


def _largest_residual(R: Tensor, norms: Tensor) -> float:
    """Return the largest relative residual of a column, infinite if there is a NaN."""
    residual = _relative(R, norms).max().item()
    return residual if residual == residual else float("inf")  # only NaN differs from itself


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, and 0 where b is not positive, as for columns that are solved already."""
    return torch.where(b > 0, a / torch.where(b > 0, b, torch.ones_like(b)), torch.zeros_like(a))

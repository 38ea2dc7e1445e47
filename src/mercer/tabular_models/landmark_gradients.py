"""Kernel ridge regression on many landmarks by preconditioned conjugate gradients, in the manner of Falkon."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, rows_per_block
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.linalg import Solution, cholesky, conjugate_gradients
from mercer.rows import sum_over_rows
from mercer.tabular_models.landmark_ridge import landmark_view

# Of the residual: far below what the noise of targets leaves of them. Rough kernels take some twenty steps to it,
# smooth ones with a small ridge hundreds.
TOLERANCE, MAX_STEPS = 1e-5, 200
# Added to K_mm, relative to its size and the mean of its diagonal: so many units of rounding of the rows' precision.
JITTER = 10.0


def many_landmarks(
    kernel: Kernel,
    X: Any,
    landmarks: Tensor,
    y: Tensor,
    ridge: float,
    weights: Tensor | None = None,
    *,
    warp: Callable[[Any], Any] | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
    working_memory: float = WORKING_MEMORY,
) -> Solution:
    """Find the coefficients a, of shape (m, c), of the f = sum_l a_l k(z_l, .) that fits the rows best at one ridge.

    Solves min_f sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2 without K_mn W K_nm, whose O(n m^2) is what many landmarks
    cost. With K_mm = L L^T and a = L^-T v the equations are

        (L^-1 K_mn W K_nm L^-T + ridge I) v = L^-1 K_mn W y.

    Landmarks are rows themselves, so that K_mn W K_nm is about (|w| / m) K_mm K_mm, |w| the sum of the weights, and
    (|w| / m) L^T L + ridge I the preconditioner (Rudi, Carratino and Rosasco 2017).

    Parameters
    ----------
    kernel, X, landmarks, y, weights, warp, working_memory
        As in `mercer.tabular_models.landmark_ridge.landmark_sums`.
    ridge : float
    tolerance, max_steps
        As in `mercer.linalg.conjugate_gradients`.

    Returns
    -------
    Solution
        The coefficients as `x`. If it has not converged, they are not to be used: they may fit the rows and be large.

    Notes
    -----
    O(n m (d + c)) time a step and O(m^3) before the first, a thirtieth of an eigendecomposition's; memory for three
    matrices of shape (m, m) in float64 beside the block. More landmarks make a better preconditioner, and fewer steps.
    """
    m, dtype, device = len(landmarks), landmarks.dtype, landmarks.device
    mass = torch.ones(len(y), dtype=dtype, device=device) if weights is None else weights
    bytes_per_row = block_numbers(*landmarks.shape) * landmarks.element_size()
    rows_a_block = rows_per_block(X.shape[0], bytes_per_row, working_memory)

    def back(A: Tensor | None) -> Tensor:
        """Return K_mn W V, V = K_nm A or the targets."""
        values = kernel, landmarks, warp, A
        (total,) = sum_over_rows(
            back_products, values, X, y, mass, rows_a_block=rows_a_block, dtype=dtype, device=device
        )
        return total

    K_mm = kernel.matrix(landmarks, working_memory=working_memory).to(torch.float64)
    K_mm.diagonal().add_(JITTER * torch.finfo(dtype).eps * m * float(K_mm.diagonal().mean()))
    L = cholesky(K_mm, warn=False).lower
    del K_mm
    (total_mass,) = sum_over_rows(total, (), mass, rows_a_block=rows_a_block, dtype=dtype, device=device)
    P = (float(total_mass) / m) * (L.T @ L)
    P.diagonal().add_(ridge)
    preconditioner = cholesky(P, warn=False)
    del P

    def multiply(V: Tensor) -> Tensor:
        A = torch.linalg.solve_triangular(L.T, V, upper=True).to(dtype)
        return torch.linalg.solve_triangular(L, back(A), upper=False) + ridge * V

    B = torch.linalg.solve_triangular(L, back(None), upper=False)
    solution = conjugate_gradients(
        multiply, B, precondition=preconditioner.solve, tolerance=tolerance, max_steps=max_steps, warn=False
    )
    return solution._replace(x=torch.linalg.solve_triangular(L.T, solution.x, upper=True))


def total() -> Callable[[Tensor], tuple[Tensor]]:
    """Return weights -> their sum."""
    return lambda w: (w.sum(),)


def back_products(
    kernel: Kernel, landmarks: Tensor, warp: Callable[[Any], Any] | None, A: Tensor | None
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor]]:
    """Return (rows, targets, weights) -> K^T W V of their kernel values K, V = K A, or the targets without A."""
    seen = landmark_view(kernel, landmarks, warp)

    def terms(rows: Tensor, target: Tensor, w: Tensor) -> tuple[Tensor]:
        _, K = seen(rows)
        return (K.T @ (w[:, None] * (target if A is None else K @ A)),)

    return terms

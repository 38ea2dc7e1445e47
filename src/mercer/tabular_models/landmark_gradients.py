"""Kernel ridge regression on many landmarks by preconditioned conjugate gradients, as in Falkon."""

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

# The relative residual at which the iteration ends, far below the noise of the targets. Rough kernels need about twenty
# steps, smooth kernels with a small ridge need hundreds.
TOLERANCE, MAX_STEPS = 1e-5, 200
# The multiple of the diagonal of K_mm that is added to it, in units of m times the rounding error of the rows' dtype.
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
    """Minimize sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2 over f = sum_l a_l k(z_l, .), for m landmarks z_l.

    The matrix K_mn W K_nm, which would cost O(n m^2), is not formed. With K_mm = L L^T and a = L^-T v, the equations

        (L^-1 K_mn W K_nm L^-T + ridge I) v = L^-1 K_mn W y

    are solved by conjugate gradients. As landmarks are drawn from the rows, K_mn W K_nm is about (|w| / m) K_mm K_mm,
    where |w| is the sum of the weights. The preconditioner is therefore (|w| / m) L^T L + ridge I (Rudi, Carratino and
    Rosasco 2017).

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
        The coefficients a, of shape (m, c), as `x`. If the iteration has not converged, they should not be used, even
        if they fit the rows: they may be very large.

    Notes
    -----
    O(n m (d + c)) time for each step, and O(m^3) before the first step, a thirtieth of the time of an
    eigendecomposition. Memory for three matrices of shape (m, m) in float64, and for one block of rows. With more
    landmarks the preconditioner is better, and fewer steps are needed.
    """
    m, dtype, device = len(landmarks), landmarks.dtype, landmarks.device
    mass = torch.ones(len(y), dtype=dtype, device=device) if weights is None else weights
    bytes_per_row = block_numbers(*landmarks.shape) * landmarks.element_size()
    rows_a_block = rows_per_block(X.shape[0], bytes_per_row, working_memory)

    def back(A: Tensor | None) -> Tensor:
        """Return K_mn W V, where V is K_nm A, or the targets if A is None."""
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
    """Return the function from a block of weights to their sum."""
    return lambda w: (w.sum(),)


def back_products(
    kernel: Kernel, landmarks: Tensor, warp: Callable[[Any], Any] | None, A: Tensor | None
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor]]:
    """Return the function from a block of rows, targets and weights W to K^T W V.

    K are the kernel values of the rows with the landmarks. V is K A, or the targets if A is None.
    """
    seen = landmark_view(kernel, landmarks, warp)

    def terms(rows: Tensor, target: Tensor, w: Tensor) -> tuple[Tensor]:
        _, K = seen(rows)
        return (K.T @ (w[:, None] * (target if A is None else K @ A)),)

    return terms

"""The common parts of both projections: Newton steps on the dual, the derivative of the solution, and checks.

A projection onto the symmetric doubly stochastic matrices has the form P = phi'(T) with T = A + f 1^T + 1 f^T, entry by
entry, where f minimizes sum_ij phi(T_ij) / 2 - sum_i f_i. The gradient of this dual is P 1 - 1, and its Hessian is
diag(W 1) + W with W = phi''(T). This is a signless Laplacian: it is positive semi-definite, and singular if the graph
of W has a bipartite component.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from mercer.checks import ASYMMETRY
from mercer.exceptions import ConvergenceWarning, invalid_parameter, warn_user
from mercer.linalg import Solution, conjugate_gradients

# The most products with the Hessian in a Newton step. At first a step solves its system only to a tenth, in some 5
# products.
PRODUCTS_PER_STEP = 200
# A Hessian may be singular, so this share of its diagonal, times the error of the row sums, is added. At the solution
# the error, and with it what is added, is zero.
DAMPING = 1e-3
# How often a step is halved, at most, until it lowers the dual enough.
HALVINGS = 40
# A step must lower the dual by at least this share of what the slope promises (the condition of Armijo).
SUFFICIENT_DECREASE = 1e-4
# The largest relative residual of the system of a gradient that goes without a warning.
GRADIENT_TOLERANCE = 1e-3


class Linked(NamedTuple):
    """The sum of phi(T), and P = phi'(T) and W = phi''(T) entry by entry."""

    total: Tensor
    P: Tensor
    W: Tensor


Link = Callable[[Tensor], Linked]


def newton(T: Tensor, link: Link, tolerance: float, max_iter: int) -> tuple[Tensor, float, int]:
    """Find the T + f 1^T + 1 f^T for which the rows of P sum to 1, by Newton steps on the dual.

    Each step is added to T itself, so that the row sums do not get the rounding errors of a large A. O(n^2) time for
    each product with the Hessian.

    Returns
    -------
    T : tensor of shape (n, n)
    error : float
        The largest difference between a row sum of P and 1.
    step : int
        How many steps were taken.
    """
    now = link(T)
    for step in range(max_iter + 1):
        gradient = now.P.sum(dim=1) - 1.0
        error = float(gradient.abs().max())
        if error <= tolerance or step == max_iter:
            break
        direction = _direction(now.W, gradient, error)
        moved = _line_search(T, link, now, direction, float(direction @ gradient))
        if moved is None:
            break
        T, now = moved
    return T, error, step


def _direction(W: Tensor, gradient: Tensor, error: float) -> Tensor:
    """Return the Newton step; far from the solution, its system is solved only roughly."""
    return _solve(W, -gradient, DAMPING * min(1.0, error), min(0.1, error), PRODUCTS_PER_STEP).x


def _solve(W: Tensor, b: Tensor, damping: float, tolerance: float, max_steps: int) -> Solution:
    """Solve (D (1 + damping) + W) x = b with D = diag(W 1), by conjugate gradients."""
    degrees = W.sum(dim=1)[:, None]
    # Before the solution is found, a row of W may be zero.
    diagonal = torch.where(degrees > 0, degrees * (1.0 + damping), 1.0)
    return conjugate_gradients(
        lambda V: diagonal * V + W @ V,
        b,
        precondition=lambda R: R / diagonal,
        tolerance=tolerance,
        max_steps=max_steps,
        warn=False,
    )


def _line_search(T: Tensor, link: Link, now: Linked, direction: Tensor, slope: float) -> tuple[Tensor, Linked] | None:
    """Return the first T + t (d 1^T + 1 d^T), t = 1, 1/2, ..., that lowers the dual enough, and its link."""
    # Near the solution, the dual changes by less than its rounding error, and full steps should be accepted.
    rounding = 10.0 * torch.finfo(T.dtype).eps * float(now.total)
    t = 1.0
    for _ in range(HALVINGS):
        # The two potentials are added first, so that T stays symmetric to the last bit.
        moved = T + t * (direction[:, None] + direction)
        after = link(moved)
        change = float(after.total - now.total) / 2.0 - t * float(direction.sum())
        if change <= SUFFICIENT_DECREASE * t * slope + rounding:
            return moved, after
        t /= 2.0
    return None


class Solved(torch.autograd.Function):
    """P at the solution T, differentiable in A by the implicit function theorem.

    P 1 = 1 stays true when A changes, so dP = W * (dA + df 1^T + 1 df^T) with (diag(W 1) + W) df = -(W * dA) 1.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, T: Tensor, link: Link) -> Tensor:
        solved = link(T)
        ctx.save_for_backward(solved.W)
        return solved.P

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None]:
        (W,) = ctx.saved_tensors
        S = W * G
        # The right side is in the range of the Hessian, even if that is singular. A null vector of the Hessian may be
        # part of w. Its entries i and j are opposite wherever W_ij is not 0, so that its contribution vanishes when the
        # result is made symmetric, as A was.
        b = S.sum(dim=1) + S.sum(dim=0)
        w = _solve(W, b, 0.0, 10.0 * torch.finfo(W.dtype).eps, PRODUCTS_PER_STEP + 2 * len(W))
        if not w.relative_residual <= GRADIENT_TOLERANCE:
            warn_user(
                "the gradient of a doubly stochastic projection has a relative error of some "
                f"{w.relative_residual:.1e}: P is near a permutation. A larger temperature or strength would help.",
                ConvergenceWarning,
            )
        return S - W * w.x[:, None], None, None


def check_affinity(name: str, A: Tensor, *, symmetric: bool, missing: bool) -> Tensor:
    """Return A if it is a square matrix of finite numbers; else raise.

    With `missing`, entries may be -inf, but not all of a row or column. With `symmetric`, A must be symmetric up to
    rounding errors and is returned symmetric to the last bit.
    """
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not len(A):
        raise invalid_parameter(name, tuple(A.shape), "a matrix of shape (n, n), n at least 1")
    values = A.detach()
    wrong = ~(values < math.inf) if missing else ~torch.isfinite(values)
    if wrong.any():
        raise invalid_parameter(name, float(values[wrong][0]), "finite or -inf" if missing else "finite throughout")
    if missing and ((values.amax(dim=1) == -math.inf) | (values.amax(dim=0) == -math.inf)).any():
        raise invalid_parameter(name, -math.inf, "above -inf somewhere in each row and each column")
    if not symmetric:
        return A
    slack = ASYMMETRY * (1.0 + float(values.amax(dim=1).abs().max()))
    close = torch.isclose(values, values.T, rtol=ASYMMETRY, atol=slack)
    if not close.all():
        i, j = (int(index) for index in torch.nonzero(~close)[0])
        pair = (float(values[i, j]), float(values[j, i]))
        raise invalid_parameter(f"{name}[{i}, {j}], {name}[{j}, {i}]", pair, "equal: the matrix must be symmetric")
    return (A + A.T) / 2.0


def warn_not_converged(function: str, max_iter: int, error: float, tolerance: float, advice: str) -> None:
    """Give a ConvergenceWarning that says how far a row sum is from 1, and what would help."""
    warn_user(
        f"{function} stopped within max_iter={max_iter} steps with a row sum that is {error:.1e} from 1, above "
        f"tolerance={tolerance:g}. {advice}",
        ConvergenceWarning,
    )

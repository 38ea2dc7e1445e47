"""What both projections share: Newton steps on the dual, the derivative of its solution, the check of the matrix.

A projection onto the symmetric doubly stochastic matrices has the form P = phi'(T) with T = A + f 1^T + 1 f^T, entry by
entry, where f minimizes sum_ij phi(T_ij) / 2 - sum_i f_i. The gradient of that dual is P 1 - 1, its Hessian
diag(W 1) + W with W = phi''(T): a signless Laplacian, positive semi-definite, and singular if the graph of W has a
bipartite component.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from mercer.exceptions import ConvergenceWarning, invalid_parameter, warn_user
from mercer.linalg import Solution, conjugate_gradients

# A step solves its system to a tenth at first, in some 5 products. Hard systems are cut off here.
PRODUCTS_PER_STEP = 200
# Share of the diagonal, times the error, that is added to a Hessian that may be singular; none is left at the solution.
DAMPING = 1e-3
# How often a step is halved until it lowers the dual. One that makes an exponential overflow does not.
HALVINGS = 40
# A gradient from a system solved worse than this is not worth much.
GRADIENT_TOLERANCE = 1e-3
# Products of embeddings in float32 differ from their transpose by less than this.
ASYMMETRY = 1e-5


class Linked(NamedTuple):
    """The sum of phi(T), and P = phi'(T) and W = phi''(T) entry by entry."""

    total: Tensor
    P: Tensor
    W: Tensor


Link = Callable[[Tensor], Linked]


def newton(T: Tensor, link: Link, tolerance: float, max_iter: int) -> tuple[Tensor, float, int]:
    """Move T along f 1^T + 1 f^T to where the rows of P sum to 1; return it, the worst row's error and the steps taken.

    Each step is absorbed into T, so that the potentials carry no rounding error of a large A into the row sums.
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
    """Return the step to where the gradient is zero, roughly at first."""
    return _solve(W, -gradient, DAMPING * min(1.0, error), min(0.1, error), PRODUCTS_PER_STEP).x


def _solve(W: Tensor, b: Tensor, damping: float, tolerance: float, max_steps: int) -> Solution:
    """Solve (D (1 + damping) + W) x = b, D = diag(W 1), by conjugate gradients."""
    degrees = W.sum(dim=1)[:, None]
    # Before the solution is found, a row may have no support.
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
    """Return the first of T + t (d 1^T + 1 d^T), t = 1, 1/2, ..., that lowers the dual enough (Armijo)."""
    # Near the solution the dual changes by less than its rounding error, and full steps are right.
    rounding = 10.0 * torch.finfo(T.dtype).eps * float(now.total)
    t = 1.0
    for _ in range(HALVINGS):
        # The sum of the two potentials comes first, so that T stays symmetric to the last bit.
        moved = T + t * (direction[:, None] + direction)
        after = link(moved)
        change = float(after.total - now.total) / 2.0 - t * float(direction.sum())
        if change <= 1e-4 * t * slope + rounding:
            return moved, after
        t /= 2.0
    return None


class Solved(torch.autograd.Function):
    """P of the solved T as a function of A, by the implicit function theorem.

    P 1 = 1 holds as A moves, so dP = W * (dA + df 1^T + 1 df^T) with (diag(W 1) + W) df = -(W * dA) 1.
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
        # The right side is in the range of the Hessian, singular or not. What a null vector adds to w is gone once the
        # result is made symmetric, as A was: its entries i and j are opposite wherever W_ij is not 0.
        b = S.sum(dim=1) + S.sum(dim=0)
        w = _solve(W, b, 0.0, 10.0 * torch.finfo(W.dtype).eps, PRODUCTS_PER_STEP + 2 * len(W))
        if not w.relative_residual <= GRADIENT_TOLERANCE:
            warn_user(
                "the gradient of a doubly stochastic projection has a relative error of some "
                f"{w.relative_residual:.1e}: P is near a permutation. A larger temperature or strength would help.",
                ConvergenceWarning,
            )
        return S - W * w.x[:, None], None, None


def check_square(name: str, A: Tensor, *, symmetric: bool, missing: bool) -> Tensor:
    """Return a square A of finite numbers, or -inf if `missing`; if `symmetric`, made so to the last bit."""
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
    """Say how far the row sums are from 1, and what would help."""
    warn_user(
        f"{function} stopped within max_iter={max_iter} steps with a row sum that is {error:.1e} from 1, above "
        f"tolerance={tolerance:g}. {advice}",
        ConvergenceWarning,
    )

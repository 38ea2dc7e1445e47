"""Gaussian process classification by Laplace's approximation: a Gaussian at the mode of the posterior.

There is one latent function f_c for each class. These are independent processes with the same kernel K, and their
softmax is p(c). With weights w_i and targets t_ic, the log posterior is
sum_i w_i sum_c t_ic log p_ic - 1/2 sum_c f_c^T K^-1 f_c. Newton's method maximizes it over the coefficients a = K^-1 f,
which are w (t - p) at the mode (Rasmussen and Williams 2006, section 3.5; the weights are an addition).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.tabular_models.latent_curvature import curvature, of_two_classes

# The largest number of Newton steps.
MOST_STEPS = 30
# The iteration ends when a step increases the log posterior by less than this, in nats in total.
SMALLEST_GAIN = 1e-6
# The smallest fraction of a Newton step that the line search tries.
SMALLEST_STEP = 1e-4
# The relative residual to which conjugate gradients solve the equations of a Newton step, and their largest number of
# iterations. With a larger residual (1e-2), steps were wrong if the prior is wide; a smaller one gained nothing.
RESIDUAL, MOST_GRADIENTS = 1e-4, 300


class Posterior(NamedTuple):
    """The mode of the posterior.

    Attributes
    ----------
    coefficients : tensor of shape (n, c)
        K^-1 f = w (t - p) at the mode, so that f(x) = sum_j k(x, x_j) coefficients_j.
    log_joint : float
        The log likelihood less half of sum_c f_c^T K^-1 f_c.
    """

    coefficients: Tensor
    log_joint: float


class Latents(NamedTuple):
    """Coefficients a, latent values f = K a without the offsets, log probabilities, and the log posterior."""

    a: Tensor
    f: Tensor
    log_p: Tensor
    value: float


def softmax_posterior(
    K: Tensor,
    targets: Tensor,
    weights: Tensor,
    offsets: Tensor,
    start: Tensor | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Posterior:
    """Return the mode of the posterior of the latent functions, found by Newton's method with a line search.

    Parameters
    ----------
    K : tensor of shape (n, n)
        The covariance of each latent function.
    targets : tensor of shape (n, c)
        1 for the class of a row and 0 for the others; shares if a row represents identical rows of several classes.
    weights : tensor of shape (n,)
    offsets : tensor of shape (c,)
        The means of the latent functions.
    start : tensor of shape (n, c), optional
        The coefficients at the start, by default 0.
    out_of_time : callable
        Called before every step but the first; once it returns True, the coefficients so far are returned.

    Notes
    -----
    About ten steps. A step takes n^3 / 3 operations for two classes, and about twenty products of K with c columns for
    more classes.
    """

    def latents(a: Tensor, f: Tensor) -> Latents:
        log_p = torch.log_softmax(f + offsets, dim=1)
        return Latents(a, f, log_p, float((weights[:, None] * targets * log_p).sum() - 0.5 * (a * f).sum()))

    newton = step_of_two_classes if targets.shape[1] == 2 else step_by_conjugate_gradients
    a = torch.zeros_like(targets) if start is None else start
    here = latents(a, K @ a)
    for count in range(MOST_STEPS):
        if count > 0 and out_of_time():
            break
        missing = weights[:, None] * (targets - here.log_p.exp()) - here.a
        direction = newton(K, missing, here.log_p, weights)
        K_direction, before, step = K @ direction, here, 1.0
        tried = latents(before.a + direction, before.f + K_direction)
        # The log posterior is concave: along a direction it increases up to a point and decreases beyond. Trying a
        # shorter step costs little compared with computing a new direction.
        while step > SMALLEST_STEP:
            step /= 2.0
            shorter = latents(before.a + step * direction, before.f + step * K_direction)
            if shorter.value <= tried.value and tried.value > before.value:
                break
            tried = shorter
        here = max(before, tried, key=lambda each: each.value)
        if here.value - before.value < SMALLEST_GAIN:
            break
    return Posterior(here.a, here.value)


def step_of_two_classes(K: Tensor, missing: Tensor, log_p: Tensor, weights: Tensor) -> Tensor:
    """Return the step of the coefficients that solves (I + W K) step = missing, for two classes.

    W only depends on the difference of the two functions, so the part of `missing` that both share is added as it is.
    """
    common = missing.mean(dim=1, keepdim=True)
    apart = missing[:, :1] - common
    apart = apart - of_two_classes(K, log_p, weights).solve(2.0 * K @ apart)
    return torch.cat([common + apart, common - apart], dim=1)


def step_by_conjugate_gradients(K: Tensor, missing: Tensor, log_p: Tensor, weights: Tensor) -> Tensor:
    """Return an approximate solution of (I + W K) step = missing, for any number of classes.

    Let W = R R^T, where the blocks of R are w_i^1/2 (I - p_i 1^T) diag(p_i)^1/2. The step is missing - R u, where
    (I + R^T K R) u = R^T K missing. Conjugate gradients start at u = 0, and every iterate gives a direction in which
    the log posterior increases.
    """
    half = (0.5 * log_p).exp()
    root = weights.sqrt()[:, None] * half

    def forth(v: Tensor) -> Tensor:  # R v
        v = root * v
        return v - half.square() * v.sum(dim=1, keepdim=True)

    def back(v: Tensor) -> Tensor:  # R^T v
        return root * (v - (half.square() * v).sum(dim=1, keepdim=True))

    residual = back(K @ missing)
    u, direction, square = torch.zeros_like(residual), residual, float((residual * residual).sum())
    enough = RESIDUAL**2 * square
    for _ in range(MOST_GRADIENTS):
        if square <= enough:
            break
        image = direction + back(K @ forth(direction))
        step = square / float((direction * image).sum())
        u = u + step * direction
        residual = residual - step * image
        before, square = square, float((residual * residual).sum())
        direction = residual + (square / before) * direction
    return missing - forth(u)


def log_evidence(K: Tensor, posterior: Posterior, weights: Tensor, offsets: Tensor) -> float:
    """Return Laplace's approximation of the log evidence."""
    log_p = torch.log_softmax(K @ posterior.coefficients + offsets, dim=1)
    return posterior.log_joint - 0.5 * curvature(K, log_p, weights).log_determinant


def left_out_latents(
    K: Tensor, posterior: Posterior, targets: Tensor, weights: Tensor, offsets: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the means and covariances of the latent values of some rows, each as if it had been left out.

    The approximate posterior is Gaussian and has one factor for each row. The factor of row i is divided out. Let S_i
    be the posterior covariance of f_i, and let g_i and W_i be the gradient and the negative Hessian of its log
    likelihood. The result has the covariance C_i = (I - S_i W_i)^-1 S_i and the mean f_i - C_i g_i.

    Parameters
    ----------
    K, targets, weights, offsets
        As for `softmax_posterior`.
    posterior : Posterior
    rows : tensor of shape (m,)
        The indices of the rows to leave out.

    Returns
    -------
    means : tensor of shape (m, c)
        The means without the offsets.
    covariances : tensor of shape (m, c, c)
    """
    f = K @ posterior.coefficients
    log_p = torch.log_softmax(f + offsets, dim=1)
    S = curvature(K, log_p, weights).covariance(K[:, rows], K.diagonal()[rows])
    p, w = log_p[rows].exp(), weights[rows]
    slope = w[:, None] * (targets[rows] - p)
    W = w[:, None, None] * (torch.diag_embed(p) - p[:, :, None] * p[:, None, :])
    eye = torch.eye(p.shape[1], dtype=K.dtype, device=K.device)
    C = torch.linalg.solve(eye - S @ W, S)
    C = 0.5 * (C + C.mT)
    return f[rows] - (C @ slope[:, :, None])[:, :, 0], C

"""Gauss-Newton steps: products with the curvature, damped solves by conjugate gradients, and a line search."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.embedding.gauss_newton_forms import GaussNewtonForm, Product
from mercer.linalg import conjugate_gradients

Features = Tensor | Sequence[Tensor]
"""The kernel features of the p views of a batch: p tensors of shape (b, r), or one of shape (p, b, r)."""

# A step must lower the loss by this share of what the slope predicts; otherwise it is halved, at most this many times.
SUFFICIENT = 0.25
MAX_HALVINGS = 12


def stacked(features: Features, W: Tensor) -> Tensor:
    """Return features as one tensor of shape (p, b, r); raise if their shapes differ or do not suit W."""
    shapes = [tuple(F.shape) for F in features]
    b = shapes[0][0] if shapes and shapes[0] else 0
    if len(shapes) < 2 or b < 2 or any(shape != (b, len(W)) for shape in shapes):
        raise ValueError(
            f"features have shapes {shapes}: for W of shape {tuple(W.shape)}, two or more of one shape (b, {len(W)}) "
            "are needed, with b at least 2."
        )
    return features.detach() if isinstance(features, Tensor) else torch.stack(tuple(features)).detach()


def gauss_newton_product(
    form: GaussNewtonForm, W: Tensor, features: Features, *, bias: Tensor | None = None, penalty: float = 0.0
) -> Product:
    """Multiply with the Gauss-Newton approximation of the Hessian of a loss around W.

    Returns the function V -> (J^T Q J + 2 ρ I) V, where J holds the derivatives of the outputs by W and Q is the
    Hessian of the loss by the outputs. This is the Hessian of the loss without the second derivatives of the outputs;
    unlike the Hessian, it has no negative eigenvalues.

    J is never formed. J^T u is a gradient that is linear in u, and its gradient by u gives J V. The graphs of both are
    recorded once. Forward mode, which evaluates the outputs for every V, took 3 to 16 times as long. The embeddings
    F_v W + bias are linear in W, so only one product with the features is needed beside the derivatives by embeddings.

    Parameters
    ----------
    form : GaussNewtonForm
    W : tensor of shape (r, h)
        The parameters; V has the same shape.
    features : p tensors of shape (b, r), or one of shape (p, b, r)
        The features F_v of each view v of the b samples of a batch.
    bias : tensor of shape (h,), optional
        The bias, which is held constant. A bias that is trained is a row of W, for a feature that is 1.
    penalty : float, default=0.0
        ρ, if ρ |W|^2 was added to the loss.

    Returns
    -------
    callable
        V -> the product, of the shape of V.

    Notes
    -----
    A product takes 4 p b r h operations with the features, and about four times the cost of the outputs:
    O(p^2 b h^2) for Barlow Twins; O(p^2 b^2 h), and O(p^2 b^2) memory, for SimCLR.
    """
    F = stacked(features, W)
    Z = _embedded(F, W, bias).requires_grad_()
    with torch.enable_grad():
        o = form.outputs(Z)
        u = torch.zeros_like(o, requires_grad=True)
        (pulled,) = torch.autograd.grad(o, Z, u, create_graph=True)
    Q = form.curvature(o.detach())

    def multiply(V: Tensor) -> Tensor:
        (along,) = torch.autograd.grad(pulled, u, F @ V, retain_graph=True)
        (by_embeddings,) = torch.autograd.grad(o, Z, Q(along), retain_graph=True)
        return F.flatten(0, 1).T @ by_embeddings.flatten(0, 1) + 2.0 * penalty * V

    return multiply


def gauss_newton_step(
    product: Product, gradient: Tensor, *, damping: float = 1.0, max_iter: int = 10, tolerance: float = 1e-3
) -> Tensor:
    """Return the damped step d that solves (H + λ I) d = g for a gradient g and a curvature H; the new W is W - d.

    λ keeps the step short in directions of little curvature. It is `damping` times the curvature along the gradient,
    g^T H g / g^T g, so that the step depends neither on the scale of the loss nor on that of the features.

    The system is solved approximately by conjugate gradients, which give no warning if they do not converge. They
    begin at 0 and resolve the directions of large curvature first, so that stopping early also damps the step. After
    any number of iterations g^T d > 0, so that a short enough step along -d lowers the loss.

    Parameters
    ----------
    product : callable
        V -> H V, for a symmetric and positive semi-definite H.
    gradient : tensor
        g, of the shape of V.
    damping : float, default=1.0
        λ as a multiple of the curvature along g, which is near the largest curvature. Large batches need less.
    max_iter : int, default=10
        Number of iterations of conjugate gradients, with one product each. Computing λ takes one more product.
    tolerance : float, default=1e-3
        Stop when |(H + λ I) d - g| is below this, relative to |g|.

    Returns
    -------
    tensor of the shape of `gradient`
        d; or g itself if the curvature along g is not positive, since there is then no scale for the step.
    """
    check_damping(damping, max_iter, tolerance)
    g = gradient.detach()
    # Scaled to length 1 in two steps, so that no square underflows. A zero gradient gives NaN and is returned as it is.
    u = g / g.abs().max()
    u = u / torch.linalg.vector_norm(u)
    curvature = float((u * product(u)).sum())
    if not curvature > 0:
        return g.clone()
    ridge = damping * curvature

    def multiply(v: Tensor) -> Tensor:
        return product(v.reshape(g.shape)).reshape(v.shape) + ridge * v

    solution = conjugate_gradients(multiply, g.flatten(), tolerance=tolerance, max_steps=max_iter, warn=False)
    return solution.x.reshape(g.shape)


def check_damping(damping: float, max_iter: int, tolerance: float) -> None:
    """Raise unless these are valid parameters of `gauss_newton_step`."""
    check_number("damping", damping, at_least=0.0)
    check_count("max_iter", max_iter)
    check_number("tolerance", tolerance, at_least=0.0)


def loss_along(
    form: GaussNewtonForm,
    W: Tensor,
    features: Features,
    d: Tensor,
    *,
    bias: Tensor | None = None,
    penalty: float = 0.0,
) -> Callable[[Tensor], Tensor]:
    """Return the function η -> the loss at W - η d.

    Since embeddings are linear in W, evaluating it costs no more than computing the outputs from the embeddings.

    Parameters
    ----------
    d : tensor of the shape of W
        The step.

    The other parameters are those of `gauss_newton_product`.
    """
    F = stacked(features, W)
    W, Z, D = W.detach(), _embedded(F, W, bias), F @ d

    def loss(eta: Tensor) -> Tensor:
        return form.loss(form.outputs(Z - eta * D)) + penalty * (W - eta * d).square().sum()

    return loss


def step_length(loss: Callable[[Tensor], Tensor], like: Tensor) -> float:
    """Return the first step length η of 1, 1/2, 1/4, ... at which the loss falls enough (Armijo's rule).

    It must fall by at least a quarter of what the slope at 0 predicts. The search is needed because cosines and
    correlations are bounded, which their derivatives do not show: on digits a full step with damping 1 raises the loss
    of SimCLR from 5.14 to 5.57 on its own batch, and half of the step lowers it to 4.75. krepes has no such search.

    Parameters
    ----------
    loss : callable
        The function η -> loss, as returned by `loss_along`.
    like : tensor
        A tensor with the dtype and the device that η is to have.

    Returns
    -------
    float
        η. It is 1 if the slope at 0 is not negative, since the rule then does not apply, and 2^-12 if no longer step
        lowers the loss enough.
    """
    zero = torch.zeros((), dtype=like.dtype, device=like.device, requires_grad=True)
    with torch.enable_grad():
        here = loss(zero)
        (slope,) = torch.autograd.grad(here, zero)
    if not slope < 0:
        return 1.0
    eta = torch.ones_like(zero)
    with torch.no_grad():
        for _ in range(MAX_HALVINGS):
            if loss(eta) <= here + SUFFICIENT * eta * slope:
                break
            eta = eta / 2
    return float(eta)


def _embedded(F: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
    """Return the embeddings F W + bias, without a graph."""
    Z = F @ W.detach()
    return Z if bias is None else Z + bias.detach()

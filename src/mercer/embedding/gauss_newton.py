"""Second-order steps without second derivatives: curvature by products, conjugate gradients, and a step length."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.embedding.gauss_newton_forms import GaussNewtonForm, Product
from mercer.linalg import conjugate_gradients

Features = Tensor | Sequence[Tensor]
"""What a batch's p views are before the parameters act on them: p tensors of shape (b, r), or one of (p, b, r)."""

# A step must bring this share of what the slope promises; else it is halved, at most so many times.
SUFFICIENT = 0.25
MAX_HALVINGS = 12


def stacked(features: Features, W: Tensor) -> Tensor:
    """Return features as one tensor of shape (p, b, r), if they are of one shape and W can act on them."""
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
    """How does the loss curve around W? Return V -> (J^T Q J + 2 ρ I) V, J the derivatives of the outputs by W.

    It is the Hessian of the loss but for the second derivatives of the outputs, and unlike it has no negative
    eigenvalues. J is never formed. J^T u is a gradient; it is linear in u, and its gradient by u gives J V. Both graphs
    are recorded once, whereas forward mode evaluates the outputs for every V, and took 3 to 16 times as long. The
    embeddings F_v W + bias are linear in W, so that both go through the embeddings and one product with the features.

    Parameters
    ----------
    form : GaussNewtonForm
    W : tensor of shape (r, h)
        The parameters; V is of their shape.
    features : p tensors of shape (b, r), or one of shape (p, b, r)
        F_v, of each view v of the b samples of a batch.
    bias : tensor of shape (h,), optional
        Held constant. A bias that is trained is a row of W, for a feature that is 1.
    penalty : float, default=0.0
        ρ, if ρ |W|^2 was added to the loss.

    Notes
    -----
    A product costs 4 p b r h operations with the features, and beside them some four times what the outputs cost:
    O(p^2 b h^2) for Barlow Twins, O(p^2 b^2 h) and memory O(p^2 b^2) for SimCLR.
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
    """Which step is best, if the loss is as gradient g and curvature H say? Return d with (H + λ I) d = g.

    W - d is that step. λ keeps it short where H says little. It is `damping` times the curvature along the gradient,
    g^T H g / g^T g, so that neither the scale of the loss nor that of the features matters.

    Conjugate gradients are meant to stop early, and give no warning: they begin at 0 and meet the directions of large
    curvature first, so that stopping damps as well. Wherever they stop, g^T d > 0: the loss falls along the step, for
    a while.

    Parameters
    ----------
    product : callable
        V -> H V, H symmetric and positive semi-definite.
    gradient : tensor
        g, of the shape of V.
    damping : float, default=1.0
        λ as a share of the curvature along g, which is near the largest there is. Less will do for large batches.
    max_iter : int, default=10
        Iterations of conjugate gradients, one product each; λ takes one more.
    tolerance : float, default=1e-3
        Stop when |(H + λ I) d - g| is below this, relative to |g|.

    Returns
    -------
    tensor of the shape of `gradient`
        g itself where nothing curves along it, so that there is no scale to be had.
    """
    check_damping(damping, max_iter, tolerance)
    g = gradient.detach()
    # Scaled to length 1 in two steps, so that no square vanishes. A gradient of zeros gives NaN, and is its own step.
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
    """Raise unless they are what `gauss_newton_step` takes."""
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
    """Return η -> the loss at W - η d, at the cost of the outputs alone: embeddings are linear in W.

    Parameters
    ----------
    d : tensor of the shape of W

    The others are as in `gauss_newton_product`.
    """
    F = stacked(features, W)
    W, Z, D = W.detach(), _embedded(F, W, bias), F @ d

    def loss(eta: Tensor) -> Tensor:
        return form.loss(form.outputs(Z - eta * D)) + penalty * (W - eta * d).square().sum()

    return loss


def step_length(loss: Callable[[Tensor], Tensor], like: Tensor) -> float:
    """How far does the curvature hold? Return the first η of 1, 1/2, 1/4, ... at which the loss falls as it should.

    It should fall by a quarter of what the slope at 0 promises (Armijo's rule). Cosines and correlations are bounded,
    which their derivatives do not know: on digits a full step at damping 1 takes SimCLR from 5.14 up to 5.57 on its own
    batch, and half of it down to 4.75. krepes has no such search.

    Parameters
    ----------
    loss : callable
        η -> the loss there, as `loss_along` returns it.
    like : tensor
        Has the dtype and the device of η.

    Returns
    -------
    float
        1 where the loss does not fall at 0, and nothing can be asked of it; 2^-12 where nothing longer will do.
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
    Z = F @ W.detach()
    return Z if bias is None else Z + bias.detach()

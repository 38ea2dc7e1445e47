"""Barlow Twins and SimCLR as convex functions of smooth outputs, the form that Gauss-Newton needs (krepes, 3.2)."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter
from mercer.losses import barlow_twins, simclr
from mercer.losses.barlow_twins import unit_columns
from mercer.losses.directions import unit

Product = Callable[[Tensor], Tensor]
"""The function V -> H V for a symmetric matrix H that is never formed; H V has the shape of V."""


class GaussNewtonForm(NamedTuple):
    """A loss as a convex function l of outputs o that depend smoothly on the embeddings: loss = l(o(Z)).

    Attributes
    ----------
    outputs : callable
        Embeddings Z of p views of b samples, of shape (p, b, h) -> o.
    loss : callable
        o -> l(o), a scalar.
    curvature : callable
        o -> the product u -> Q u with Q, the Hessian of l at o.
    """

    outputs: Callable[[Tensor], Tensor]
    loss: Callable[[Tensor], Tensor]
    curvature: Callable[[Tensor], Product]


def barlow_twins_form(off_diagonal: float = 0.0051, center: bool = True) -> GaussNewtonForm:
    """Write Barlow Twins as a sum of squares: o_ij = sqrt(w_ij) (C_ij - δ_ij), the loss is |o|^2, and Q = 2 I.

    C holds the correlations of `mercer.losses.barlow_twins`; w_ii = 1, and w_ij = λ for i != j. For p > 2 views, o
    holds the residuals of all pairs of views, divided by the square root of the number of pairs.

    krepes solves J^T J d = g. However, |o|^2 has the gradient g = 2 J^T o and the curvature 2 J^T J, so that this d is
    twice the Gauss-Newton step: if o is linear, it leads to the other side of the minimum, at the same loss. Here the
    factor 2 is kept, and a full step has the learning rate 1.

    Parameters
    ----------
    off_diagonal : float, default=0.0051
        λ.
    center : bool, default=True
        Whether each component of the embeddings is centered over the batch first.
    """
    root = check_number("off_diagonal", off_diagonal, at_least=0.0) ** 0.5

    def residuals(Z: Tensor) -> Tensor:
        columns = [unit_columns(z, center) for z in Z]
        C = torch.stack([a.T @ b for a, b in combinations(columns, 2)])
        eye = torch.eye(C.shape[-1], dtype=C.dtype, device=C.device)
        return (C - eye) * (root + (1.0 - root) * eye) / len(C) ** 0.5

    return GaussNewtonForm(residuals, lambda o: o.square().sum(), lambda o: lambda u: 2.0 * u)


def simclr_form(temperature: float = 0.5) -> GaussNewtonForm:
    """Write SimCLR as the cross entropy of a softmax: o holds the logits, and Q is diag(p) - p p^T for each row of o.

    The row of an embedding u holds s(u, w) / t for the other 2b - 1 embeddings w of two views, and p is the softmax of
    the row. Q is divided by the number of rows, since the loss is their mean. It is applied row by row, in O(b) time
    for each: Q v = p * v - p (p^T v). With more than two views, each pair of views has its own 2b rows.

    Parameters
    ----------
    temperature : float, default=0.5
        t.
    """
    t = check_number("temperature", temperature, above=0.0)

    def logits(Z: Tensor) -> Tensor:
        pairs = torch.stack([torch.cat([a, b]) for a, b in combinations(unit(Z, dim=2), 2)])
        S = pairs @ pairs.mT / t
        # An embedding is not compared with itself: this entry gets the probability 0 and no derivative.
        return S.masked_fill(torch.eye(S.shape[-1], dtype=torch.bool, device=S.device), -torch.inf)

    return GaussNewtonForm(logits, _cross_entropy, _softmax_curvature)


def _cross_entropy(logits: Tensor) -> Tensor:
    """Return the mean over rows of -log p of the other view, which is b columns away from the diagonal."""
    b = logits.shape[-1] // 2
    positives = torch.cat([logits.diagonal(b, -2, -1), logits.diagonal(-b, -2, -1)], dim=-1)
    return (logits.logsumexp(dim=-1) - positives).mean()


def _softmax_curvature(logits: Tensor) -> Product:
    """Return u -> Q u, where Q is the Hessian of `_cross_entropy`."""
    P = torch.softmax(logits, dim=-1)
    n_rows = P.shape[:-1].numel()

    def multiply(u: Tensor) -> Tensor:
        Pu = P * u
        return (Pu - P * Pu.sum(dim=-1, keepdim=True)) / n_rows

    return multiply


FORMS: dict[str, Callable[..., GaussNewtonForm]] = {"barlow_twins": barlow_twins_form, "simclr": simclr_form}
NAMES = {barlow_twins: "barlow_twins", simclr: "simclr"}


def gauss_newton_form(loss: Any) -> GaussNewtonForm:
    """Return the Gauss-Newton form of a loss.

    Parameters
    ----------
    loss : str or callable
        "barlow_twins" or "simclr", the function of that name in `mercer.losses`, or a partial of it with parameters,
        such as `partial(simclr, temperature=0.1)`.
    """
    function, parameters = (loss.func, loss.keywords) if isinstance(loss, partial) else (loss, {})
    name = function if isinstance(function, str) else next((NAMES[f] for f in NAMES if f is function), None)
    if name not in FORMS or (isinstance(loss, partial) and loss.args):
        allowed = "'barlow_twins', 'simclr', one of these functions, or a partial of one with its parameters by name"
        raise invalid_parameter("loss", loss, allowed, "Other losses have no Gauss-Newton form.")
    return FORMS[name](**parameters)

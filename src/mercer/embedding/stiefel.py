"""Steps under the constraint W^T W = I: along the Stiefel manifold, never off it (Absil, Mahony and Sepulchre 2008)."""

import torch
from torch import Tensor


def tangent(W: Tensor, D: Tensor) -> Tensor:
    """Return the part of a step D that keeps W^T W = I to first order: D - W sym(W^T D).

    For D = -rate G, G the gradient by W, the loss falls along it by rate |tangent(W, G)|^2 to first order.
    """
    S = W.T @ D
    return D - W @ ((S + S.T) / 2)


def retracted(W: Tensor) -> Tensor:
    """Return the Q of W = Q R with a positive diagonal of R: back to Q^T Q = I, near W + D to second order in D."""
    Q, R = torch.linalg.qr(W.to(torch.float64))
    signs = torch.where(R.diagonal() < 0, -1.0, 1.0).to(Q)
    return (Q * signs).to(W)

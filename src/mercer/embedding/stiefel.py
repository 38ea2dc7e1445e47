"""Steps on the Stiefel manifold, on which the constraint W^T W = I holds (Absil, Mahony and Sepulchre 2008)."""

import torch
from torch import Tensor


def tangent(W: Tensor, D: Tensor) -> Tensor:
    """Return the part D - W sym(W^T D) of a step D that maintains W^T W = I to first order.

    For D = -rate G, where G is the gradient by W, this step lowers the loss by rate |tangent(W, G)|^2 to first order.
    """
    S = W.T @ D
    return D - W @ ((S + S.T) / 2)


def retracted(W: Tensor) -> Tensor:
    """Return Q of the decomposition W = Q R in which R has a positive diagonal, so that Q^T Q = I.

    If W is a point of the manifold plus a tangent step D, Q differs from it by terms of second order in D.
    """
    Q, R = torch.linalg.qr(W.to(torch.float64))
    signs = torch.where(R.diagonal() < 0, -1.0, 1.0).to(Q)
    return (Q * signs).to(W)

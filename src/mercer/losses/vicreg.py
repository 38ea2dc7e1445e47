"""Variance, invariance and covariance regularization, VICReg (Bardes et al. 2022)."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.pairs import check_views


def vicreg(
    *views: Tensor,
    invariance: float = 25.0,
    variance: float = 25.0,
    covariance: float = 1.0,
    target: float = 1.0,
    epsilon: float = 1e-4,
) -> Tensor:
    """Return a loss that is small if the views of a sample agree, and if columns vary and are uncorrelated.

    For two views Z and Z' it is λ s(Z, Z') + μ (v(Z) + v(Z')) + ν (c(Z) + c(Z')), where
    s is the mean of (z - z')^2 over samples and columns,
    v is the mean over columns of max(0, target - sqrt(variance + epsilon)), and
    c is the sum of the squared covariances of different columns, divided by h.
    Variances and covariances have the denominator n - 1. For p > 2 views the loss is the mean over pairs of views.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views, n >= 2; row i of each belongs to sample i.
    invariance, variance : float, default=25.0
        λ and μ. All defaults are the authors'.
    covariance : float, default=1.0
        ν.
    target : float, default=1.0
        The standard deviation from which on a column is not penalized.
    epsilon : float, default=1e-4
        Added to variances, so that the square root has a finite derivative.

    Notes
    -----
    O(p n h^2) time. This is the authors' Algorithm 1. Their equation for s sums over the columns, which amounts to
    `invariance` times h. Their released code takes the mean of v(Z) and v(Z'), which amounts to half of `variance`.
    """
    check_views(views, min_rows=2)
    for name, weight in (("invariance", invariance), ("variance", variance), ("covariance", covariance)):
        check_number(name, weight, at_least=0.0)
    check_number("target", target, at_least=0.0)
    check_number("epsilon", epsilon, above=0.0)
    Z = torch.stack(views)
    p = len(Z)
    # The squared distances of all pairs of p points sum to p times the sum of their squared distances from the mean.
    s = 2.0 / (p - 1) * (Z - Z.mean(dim=0)).square().sum(dim=0).mean()
    v = (target - (Z.var(dim=1) + epsilon).sqrt()).relu().mean()
    return invariance * s + 2.0 * (variance * v + covariance * squared_covariances(Z))


def squared_covariances(Z: Tensor) -> Tensor:
    """Return the sum of the squared covariances of different columns, divided by h, as a mean over p views.

    Parameters
    ----------
    Z : tensor of shape (p, n, h)
    """
    p, n, h = Z.shape
    centered = Z - Z.mean(dim=1, keepdim=True)  # before the product: subtracting the mean after it loses digits
    C = centered.mT @ centered / (n - 1)
    return (C - torch.diag_embed(C.diagonal(dim1=1, dim2=2))).square().sum() / (h * p)

"""Kernel ridge regression with its exact leave-one-out errors, for one ridge or for a path of ridges."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.linalg.cholesky import cholesky

# One eigendecomposition costs about as much as this many Cholesky factorizations with their inverses.
RIDGES_WORTH_AN_EIGENDECOMPOSITION = 6


class RidgeSolution(NamedTuple):
    """The coefficients for one ridge, and the error of each row's prediction if that row had been left out.

    Attributes
    ----------
    ridge : float
    alpha : tensor of shape (n,) or (n, k)
        (K + ridge W^-1)^-1 y, where W is the diagonal matrix of the sample weights.
    residuals : tensor of the shape of `alpha`
        y_i - f_-i(x_i), where f_-i is fitted without row i.
    variances : tensor of shape (n,)
        1 / (A^-1)_ii with A = K + ridge W^-1. This is the leave-one-out predictive variance of the Gaussian process
        with kernel K and noise variance `ridge`, up to the output scale.
    """

    ridge: float
    alpha: Tensor
    residuals: Tensor
    variances: Tensor


def ridge_leave_one_out(
    K: Tensor, y: Tensor, ridge: float, weights: Tensor | None = None, *, intercept: bool = False
) -> RidgeSolution:
    """Fit kernel ridge regression and all n leave-one-out fits with one factorization, in O(n^3).

    Solves min_f sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2. With A = K + ridge W^-1 and a = A^-1 y, the fit without row i
    has the error a_i / (A^-1)_ii at row i. So all n fits need only the diagonal of one inverse.

    Parameters
    ----------
    K : tensor of shape (n, n)
    y : tensor of shape (n,) or (n, k)
    ridge : float
    weights : tensor of shape (n,), optional
        Sample weights, all positive.
    intercept : bool, default=False
        Whether K is double-centered, as for a model with an intercept; y is then centered here. The centered rows sum
        to zero, so that a row which is left out would still follow from the others. Therefore
        (A^-1)_ii - 1 / (n ridge) takes the place of (A^-1)_ii. This excludes weights, and a ridge of 0.

    Returns
    -------
    RidgeSolution
    """
    y = _check_intercept(y, weights, intercept)
    if weights is None:
        factor = cholesky(K, shift=ridge)
    else:
        A = K.clone()
        A.diagonal().add_(ridge / weights)
        factor = cholesky(A)
    alpha = factor.solve(y)
    diagonal = factor.inverse_diagonal(overwrite=True)
    return _solution(ridge, alpha, diagonal, intercept)


def ridge_path(
    K: Tensor, y: Tensor, ridges: Sequence[float], weights: Tensor | None = None, *, intercept: bool = False
) -> Iterator[RidgeSolution]:
    """Yield the RidgeSolution of each ridge; the parameters are those of `ridge_leave_one_out`.

    Fewer than six ridges cost a Cholesky factor and an inverse each. For six or more, one eigendecomposition of
    W^1/2 K W^1/2 = U D U^T serves all of them: O(n^3) once, and O(n^2 k) for each ridge and k outputs.
    """
    if len(ridges) < RIDGES_WORTH_AN_EIGENDECOMPOSITION:
        for ridge in ridges:
            yield ridge_leave_one_out(K, y, ridge, weights, intercept=intercept)
        return
    y = _check_intercept(y, weights, intercept)
    root = torch.ones_like(K[0]) if weights is None else weights.sqrt()
    eigenvalues, U = torch.linalg.eigh(K if weights is None else root[:, None] * K * root)
    eigenvalues.clamp_(min=0.0)
    targets = U.T @ (root[:, None] * y.reshape(len(y), -1))
    squares = U.square()
    for ridge in ridges:
        # At ridge = 0 the null space of K is left out, as in a pseudo-inverse.
        inverse = torch.where(eigenvalues + ridge > 0, 1.0 / (eigenvalues + ridge), 0.0)
        alpha = root[:, None] * (U @ (inverse[:, None] * targets))
        diagonal = root.square() * (squares @ inverse)
        yield _solution(ridge, alpha.reshape(y.shape), diagonal, intercept)


def _check_intercept(y: Tensor, weights: Tensor | None, intercept: bool) -> Tensor:
    """Return y, centered if there is an intercept."""
    if intercept and weights is not None:
        raise ValueError("intercept=True cannot be combined with weights: center by the weighted means instead.")
    return y - y.mean(dim=0) if intercept else y


def _solution(ridge: float, alpha: Tensor, diagonal: Tensor, intercept: bool) -> RidgeSolution:
    """Return the solution from the coefficients and the diagonal of the inverse of K + ridge W^-1."""
    if intercept:
        diagonal = (diagonal - 1.0 / (len(diagonal) * ridge)).clamp(min=torch.finfo(diagonal.dtype).tiny)
    variances = 1.0 / diagonal
    residuals = alpha * (variances if alpha.ndim == 1 else variances[:, None])
    return RidgeSolution(float(ridge), alpha, residuals, variances)

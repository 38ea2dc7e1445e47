"""Kernel ridge regression with its exact leave-one-out errors, for one ridge or a whole path of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.linalg.cholesky import cholesky

# One eigendecomposition costs about as much as this many Cholesky factors with their inverses.
RIDGES_WORTH_AN_EIGENDECOMPOSITION = 6


class RidgeSolution(NamedTuple):
    """Coefficients for one ridge, and what each row's prediction would be had it been left out.

    Attributes
    ----------
    ridge : float
    alpha : tensor of shape (n,) or (n, k)
        (K + ridge W^-1)^-1 y, W the diagonal of the sample weights.
    residuals : tensor of the shape of `alpha`
        y_i - f_-i(x_i), f_-i fitted without row i.
    variances : tensor of shape (n,)
        1 / (A^-1)_ii with A = K + ridge W^-1: the leave-one-out predictive variance of the Gaussian process with
        kernel K and noise `ridge`, up to the output scale.
    """

    ridge: float
    alpha: Tensor
    residuals: Tensor
    variances: Tensor


def ridge_leave_one_out(
    K: Tensor, y: Tensor, ridge: float, weights: Tensor | None = None, *, intercept: bool = False
) -> RidgeSolution:
    """Fit kernel ridge regression and all n leave-one-out fits, with one factorization.

    Solves min_f sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2. With A = K + ridge W^-1 and a = A^-1 y, the fit
    without row i misses y_i by a_i / (A^-1)_ii, so n fits cost one inverse: O(n^3) in all.

    Parameters
    ----------
    K : tensor of shape (n, n)
    y : tensor of shape (n,) or (n, k)
    ridge : float
    weights : tensor of shape (n,), optional
        Sample weights, all positive.
    intercept : bool, default=False
        Say that K is double-centered, as for a model with an intercept; y is centered here. A centered row is minus the
        sum of the others, so that leaving it out alone would leave nothing out: (A^-1)_ii less 1 / (n ridge) takes the
        place of (A^-1)_ii. Not with weights, and not with ridge 0.
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
    """Yield the solution with its leave-one-out errors for each ridge.

    A few ridges cost a Cholesky factor and an inverse each. For more of them one eigendecomposition of
    W^1/2 K W^1/2 = U D U^T serves all: O(n^3) once and O(n^2 k) a ridge.
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
        # At ridge = 0 the null space of K is left out, as a pseudo-inverse would.
        inverse = torch.where(eigenvalues + ridge > 0, 1.0 / (eigenvalues + ridge), 0.0)
        alpha = root[:, None] * (U @ (inverse[:, None] * targets))
        diagonal = root.square() * (squares @ inverse)
        yield _solution(ridge, alpha.reshape(y.shape), diagonal, intercept)


def _check_intercept(y: Tensor, weights: Tensor | None, intercept: bool) -> Tensor:
    if intercept and weights is not None:
        raise ValueError("intercept=True cannot be combined with weights: center by the weighted means instead.")
    return y - y.mean(dim=0) if intercept else y


def _solution(ridge: float, alpha: Tensor, diagonal: Tensor, intercept: bool) -> RidgeSolution:
    if intercept:
        diagonal = (diagonal - 1.0 / (len(diagonal) * ridge)).clamp(min=torch.finfo(diagonal.dtype).tiny)
    variances = 1.0 / diagonal
    residuals = alpha * (variances if alpha.ndim == 1 else variances[:, None])
    return RidgeSolution(float(ridge), alpha, residuals, variances)

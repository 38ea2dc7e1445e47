"""Low-rank self-expression (LRR) in closed form, for data with and without noise."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.exceptions import invalid_parameter
from mercer.linalg import top_eigenpairs


def low_rank_map(K: Tensor, noise: float | None = None) -> Tensor:
    """Return the matrix B such that C = B K are the low-rank coefficients that express a dictionary Z by itself.

    For data without noise, C minimizes the nuclear norm |C|_* subject to Z = Z C. It is the shape interaction matrix
    V V^T of the singular value decomposition Z = U S V^T. With noise, C minimizes |C|_* + tau/2 |Z - Z C|^2, and is
    V (I - S^-2 / tau) V^T over the singular values above 1 / sqrt(tau) (Favaro, Vidal and Ravichandran, 2011). Since
    K = Z^T Z = V S^2 V^T, both equal B K with B = V F S^-2 V^T, where F = I or F = I - S^-2 / tau.

    Parameters
    ----------
    K : tensor of shape (m, m)
        Z^T Z, or a kernel matrix.
    noise : float, optional
        1 / sqrt(tau) as a share of the largest singular value. None is for data without noise, whose rank is the number
        of eigenvalues of K above m times the rounding error of the largest.

    Returns
    -------
    tensor of shape (m, m)

    Notes
    -----
    O(m^3), for an eigendecomposition.
    """
    values, V = top_eigenpairs(K)
    largest = values[0].clamp(min=0.0)
    share = len(K) * torch.finfo(K.dtype).eps if noise is None else noise**2
    kept = values > share * largest
    # The entries of an atom of length zero in the singular vectors are zero, except for rounding.
    values, V = values[kept], V[:, kept] * (K.diagonal() > 0)[:, None]
    F = torch.ones_like(values) if noise is None else 1.0 - share * largest / values
    return (V * (F / values)) @ V.T


class LowRankExpression(SelfExpression):
    """Low-rank self-expression of the whole dictionary at once: low-rank representation (LRR).

    C minimizes |C|_* + tau/2 |phi(Z) - phi(Z) C|^2 (Liu, Lin and Yu 2010). The closed form with noise is that of
    Favaro, Vidal and Ravichandran (2011). One linear map gives the coefficients of all targets, whether they are in the
    dictionary or not. A point may be expressed in part by itself, so `own` has no effect.

    Parameters
    ----------
    noise : float, optional
        Singular values of the data up to this share of the largest count as noise; above 0 and below 1. This means
        tau = 1 / (noise sigma_1)^2, and sigma_i has the weight 1 - (noise sigma_1 / sigma_i)^2. The scale of the data
        does not matter. None is for data without noise: tau is infinite.
    """

    def __init__(self, noise: float | None = None) -> None:
        self.noise = noise

    def solver(self, K: Tensor) -> Solver:
        if self.noise is not None and check_number("noise", self.noise, above=0.0) >= 1.0:
            raise invalid_parameter("noise", self.noise, "a finite number above 0 and below 1, or None")
        B = low_rank_map(K, self.noise)

        def coefficients(k: Tensor, norms: Tensor, own: Tensor | None) -> Tensor:
            return B @ k

        return coefficients

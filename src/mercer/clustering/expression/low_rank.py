"""Low-rank self-expression (LRR) in closed form, for clean data and for data with noise."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.exceptions import invalid_parameter
from mercer.linalg import top_eigenpairs


def low_rank_map(K: Tensor, noise: float | None = None) -> Tensor:
    """Return the matrix B with C = B K the low-rank coefficients of a dictionary Z in itself.

    For clean data C minimizes the nuclear norm |C|_* subject to Z = Z C: it is the shape interaction matrix V V^T of
    the singular value decomposition Z = U S V^T. With noise it minimizes |C|_* + tau/2 |Z - Z C|^2, which is
    V (I - S^-2 / tau) V^T over the singular values above 1 / sqrt(tau) (Favaro, Vidal and Ravichandran, 2011). As
    K = Z^T Z = V S^2 V^T, both are B K with B = V F S^-2 V^T, where F = I or I - S^-2 / tau.

    Parameters
    ----------
    K : tensor of shape (m, m)
        Z^T Z, or a kernel matrix.
    noise : float, optional
        1 / sqrt(tau) as a share of the largest singular value; None for clean data, whose rank is the number of
        eigenvalues of K above m times the rounding error of the largest.

    Returns
    -------
    tensor of shape (m, m)

    Notes
    -----
    O(m^3), an eigendecomposition.
    """
    values, V = top_eigenpairs(K)
    largest = values[0].clamp(min=0.0)
    share = len(K) * torch.finfo(K.dtype).eps if noise is None else noise**2
    kept = values > share * largest
    # An atom of length zero has no part in any singular vector, but for rounding.
    values, V = values[kept], V[:, kept] * (K.diagonal() > 0)[:, None]
    F = torch.ones_like(values) if noise is None else 1.0 - share * largest / values
    return (V * (F / values)) @ V.T


class LowRankExpression(SelfExpression):
    """C minimizes |C|_* + tau/2 |phi(Z) - phi(Z) C|^2 for the whole dictionary at once: low-rank representation (LRR).

    Liu, Lin and Yu (2010); the closed form with noise is that of Favaro, Vidal and Ravichandran (2011). Every target,
    in the dictionary or not, gets its coefficients by the linear map that gives the dictionary its own. The diagonal is
    allowed: a point may express itself in part, and `own` changes nothing.

    Parameters
    ----------
    noise : float, optional
        Singular values of the data up to this share of the largest are noise, above 0 and below 1:
        tau = 1 / (noise sigma_1)^2, so that sigma_i has the weight 1 - (noise sigma_1 / sigma_i)^2. The data's scale
        does not matter. None says that there is no noise: tau is infinite.
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

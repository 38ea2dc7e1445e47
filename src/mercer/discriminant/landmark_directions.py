"""Discriminants that are functions of m landmarks: one m x m eigenproblem, and a scalar root for each component."""

from typing import NamedTuple

import torch
from scipy.optimize import brentq
from torch import Tensor

from mercer.discriminant.groups import significant, steady_signs
from mercer.discriminant.left_out import CLASS_RATIO
from mercer.linalg import generalized_eigenpairs, top_eigenpairs

# The relative error of the roots in `class_components`.
ROOT_ERROR = 1e-15


class LandmarkBasis(NamedTuple):
    """Coordinates of functions of m landmarks, in which the regularizer is I and the total covariance is diagonal.

    Attributes
    ----------
    V : tensor of shape (m, r)
        The basis: V^T R V = I and V^T T V = diag(spread), where T = sum_i (k_i - mean)(k_i - mean)^T.
    spread : tensor of shape (r,)
    mean : tensor of shape (m,)
        The mean of k over the rows.
    group_means : tensor of shape (c, r)
        The mean of the coordinates V^T (k - mean) in each class.
    counts : tensor of shape (c,)
        The number of rows of each class.
    """

    V: Tensor
    spread: Tensor
    mean: Tensor
    group_means: Tensor
    counts: Tensor


def landmark_basis(
    total: Tensor, group_sums: Tensor, counts: Tensor, R: Tensor | None, rounding: float = 0.0
) -> LandmarkBasis:
    """Solve the generalized eigenproblem of (T, R) from sums over the rows, once for all ridges.

    Parameters
    ----------
    total : tensor of shape (m, m)
        sum_i k_i k_i^T.
    group_sums : tensor of shape (c, m)
        The sum of k_i in each class.
    counts : tensor of shape (c,)
        The number of rows of each class.
    R : tensor of shape (m, m) or None
        The regularizer; None is the identity.
    rounding : float, default=0.0
        The relative rounding error of the kernel values. Eigenvectors of R whose eigenvalues are smaller than this,
        relative to the largest, are dropped: values divided by the square root of such an eigenvalue are noise.

    Notes
    -----
    O(m^3).
    """
    n = counts.sum()
    mean = group_sums.sum(dim=0) / n
    T = total - n * torch.outer(mean, mean)
    pairs = top_eigenpairs(T) if R is None else generalized_eigenpairs(T, R, tolerance=max(rounding, rounding_of(R)))
    group_means = (group_sums / counts[:, None] - mean) @ pairs.vectors
    return LandmarkBasis(pairs.vectors, pairs.values.clamp(min=0.0), mean, group_means, counts)


def rounding_of(R: Tensor) -> float:
    """Return the rounding error of the eigenvalues of a matrix, relative to the largest."""
    return len(R) * torch.finfo(R.dtype).eps


def landmark_discriminants(basis: LandmarkBasis, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Solve (13) in the coordinates of a basis: return the coefficients beta of shape (r, k), and the ratios.

    The denominator of (13) is diag(spread + ridge) - G G^T, where the c columns of G are sqrt(n_y) (class mean).
    Components with ratios above 1 follow from scalar equations (`class_components`). Only if more components are
    requested, an eigenproblem of size r is solved.
    """
    G = (basis.counts.sqrt()[:, None] * basis.group_means).T
    if n_components <= n_class_components(basis, ridge):
        beta, mu = class_components(basis.spread, G, ridge, n_components)
    else:
        root = basis.spread.sqrt()
        core = torch.diag(basis.spread + ridge) - G @ G.T
        mu, W = significant(top_eigenpairs(root[:, None] * torch.linalg.solve(core, torch.diag(root)), n_components))
        beta = torch.linalg.solve(core, root[:, None] * W)
    variances = (basis.spread[:, None] * beta.square()).sum(dim=0) / basis.counts.sum()
    return beta * (mu / variances).sqrt() * steady_signs(basis.group_means @ beta), mu


def n_class_components(basis: LandmarkBasis, ridge: float) -> int:
    """Return the number of components of (13) with a ratio above 1: that of eigenvalues of G^T G above the ridge."""
    G = (basis.counts.sqrt()[:, None] * basis.group_means).T
    return int((torch.linalg.eigvalsh(G.T @ G) > CLASS_RATIO * ridge).sum())


def class_components(spread: Tensor, G: Tensor, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Return the k components of (13) with the largest ratios above 1, of shape (r, k), and their ratios.

    Such a component is beta = diag(1 / (spread + rho)) G theta. The class scores theta are an eigenvector of
    S(rho) = rho G^T diag(1 / (spread + rho)) G with eigenvalue `ridge`, and the ratio is mu = rho / (rho - ridge). The
    eigenvalues of S grow with rho, so the k-th of them equals the ridge at exactly one rho, which is found by root
    finding. This avoids an eigenproblem of size r, which is hard to solve if ratios are little above 1.

    Notes
    -----
    O(r c^2 + c^3) for each of about ten steps to each of the k roots.
    """

    def S(rho: float) -> Tensor:
        return G.T @ ((rho / (spread + rho))[:, None] * G)

    def excess(rho: float, k: int) -> float:
        return float(torch.linalg.eigvalsh(S(rho))[-1 - k]) - ridge

    betas: list[Tensor] = []
    rhos: list[float] = []
    pairs = None
    for k in range(n_components):
        low = rhos[-1] if rhos else ridge
        high = 2.0 * low
        while excess(high, k) < 0:
            low, high = high, 2.0 * high
        # If this root equals the previous one, rounding errors may put it on either side of zero.
        rho = low if excess(low, k) >= 0 else float(brentq(excess, low, high, args=(k,), xtol=ROOT_ERROR * low))
        # The eigenvectors of equal roots must come from one decomposition, so that they are orthogonal.
        if pairs is None or rho > CLASS_RATIO * rhos[-1]:
            pairs = top_eigenpairs(S(rho))
        rhos.append(rho)
        betas.append((G @ pairs.vectors[:, k]) / (spread + rho))
    own = torch.tensor(rhos, dtype=G.dtype, device=G.device)
    return torch.stack(betas, dim=1), own / (own - ridge).clamp(min=torch.finfo(G.dtype).eps * ridge)

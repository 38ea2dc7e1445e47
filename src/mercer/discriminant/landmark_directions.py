"""Discriminants that are functions of m landmarks: one pencil of m x m sums, and a root of one variable a component."""

from typing import NamedTuple

import torch
from scipy.optimize import brentq
from torch import Tensor

from mercer.discriminant.groups import significant, steady_signs
from mercer.discriminant.left_out import CLASS_RATIO
from mercer.linalg import generalized_eigenpairs, top_eigenpairs

# Of the roots that landmark components are, relative.
ROOT_ERROR = 1e-15


class LandmarkBasis(NamedTuple):
    """Functions of m landmarks in coordinates in which the regularizer is I and the total covariance is diagonal.

    Attributes
    ----------
    V : tensor of shape (m, r)
        V^T R V = I, V^T T V = diag(spread), T = sum_i (k_i - mean)(k_i - mean)^T.
    spread : tensor of shape (r,)
    mean : tensor of shape (m,)
        The mean of k over the rows.
    group_means : tensor of shape (c, r)
        Of the coordinates V^T (k - mean), class by class.
    counts : tensor of shape (c,)
        How many rows of each class the sums are over.
    """

    V: Tensor
    spread: Tensor
    mean: Tensor
    group_means: Tensor
    counts: Tensor


def landmark_basis(
    total: Tensor, group_sums: Tensor, counts: Tensor, R: Tensor | None, rounding: float = 0.0
) -> LandmarkBasis:
    """Diagonalize the pencil (T, R) from sums over the rows, once for all ridges.

    Parameters
    ----------
    total : tensor of shape (m, m)
        sum_i k_i k_i^T.
    group_sums : tensor of shape (c, m)
        The sum of k_i in each class.
    counts : tensor of shape (c,)
    R : tensor of shape (m, m) or None
        None stands for the identity.
    rounding : float, default=0.0
        Of the kernel values, relative. Directions in which R is smaller than that, relative to its largest eigenvalue,
        are left out: values divided by the root of so little are noise.
    """
    n = counts.sum()
    mean = group_sums.sum(dim=0) / n
    T = total - n * torch.outer(mean, mean)
    pairs = top_eigenpairs(T) if R is None else generalized_eigenpairs(T, R, tolerance=max(rounding, rounding_of(R)))
    group_means = (group_sums / counts[:, None] - mean) @ pairs.vectors
    return LandmarkBasis(pairs.vectors, pairs.values.clamp(min=0.0), mean, group_means, counts)


def rounding_of(R: Tensor) -> float:
    """Return the error of the eigenvalues of a matrix, relative to the largest."""
    return len(R) * torch.finfo(R.dtype).eps


def landmark_discriminants(basis: LandmarkBasis, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Solve (13) in the basis: return the coefficients beta of shape (r, k) in it, and the ratios.

    The denominator is diag(spread + ridge) - G G^T with the c columns sqrt(n_y) (class mean) in G. Components with
    ratios above 1 regress their class means with a ridge rho of their own (`class_components`); only if more are asked
    for is there an eigenproblem of size r.
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
    """Return how many components of (13) have a ratio above 1: as many as G^T G has eigenvalues above the ridge."""
    G = (basis.counts.sqrt()[:, None] * basis.group_means).T
    return int((torch.linalg.eigvalsh(G.T @ G) > CLASS_RATIO * ridge).sum())


def class_components(spread: Tensor, G: Tensor, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Return the components of (13) with ratios above 1, of shape (r, k), and these, by k roots of one variable.

    Such a component is beta = diag(1 / (spread + rho)) G theta, with the class scores theta an eigenvector of
    S(rho) = rho G^T diag(1 / (spread + rho)) G of eigenvalue `ridge`, and its ratio is mu = rho / (rho - ridge). The
    eigenvalues of S grow with rho, so that the k-th meets the ridge once: O(r c^2 + c^3) for each of some ten steps to
    a root, and no eigenproblem of size r, which is hard where ratios are little above 1.
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
        # Of equal roots, the one before is this one too, and rounding may put it on either side of zero.
        rho = low if excess(low, k) >= 0 else float(brentq(excess, low, high, args=(k,), xtol=ROOT_ERROR * low))
        # Of equal roots the eigenvectors must come from one decomposition, to be orthogonal.
        if pairs is None or rho > CLASS_RATIO * rhos[-1]:
            pairs = top_eigenpairs(S(rho))
        rhos.append(rho)
        betas.append((G @ pairs.vectors[:, k]) / (spread + rho))
    own = torch.tensor(rhos, dtype=G.dtype, device=G.device)
    return torch.stack(betas, dim=1), own / (own - ridge).clamp(min=torch.finfo(G.dtype).eps * ridge)

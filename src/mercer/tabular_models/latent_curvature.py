"""The curvature of the posterior of latent functions: its log determinant, and the posterior covariance.

There is a latent function f_c for each class, with prior covariance K. W is the negative Hessian of the log likelihood,
whose blocks at the rows are w_i (diag(p_i) - p_i p_i^T). For two classes the labels only depend on f_1 - f_2, and one
matrix of shape (n, n) is factored. For more classes, one matrix for each class and one for all of them is factored
(Rasmussen and Williams 2006, section 3.5).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Curvature(ABC):
    """The curvature of the posterior.

    Attributes
    ----------
    log_determinant : float
        log |I + K W|.
    """

    log_determinant: float

    @property
    def nbytes(self) -> int:
        """The number of bytes of the tensors."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    @abstractmethod
    def covariance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return the posterior covariance of the latent functions at n new rows, of shape (n, c, c).

        Parameters
        ----------
        K_cross : tensor of shape (m, n)
            The kernel values of the rows of the fit and the new rows.
        prior : tensor of shape (n,)
            The prior variance at each new row.
        """


@dataclass(frozen=True, eq=False)
class OfTwoClasses(Curvature):
    """Two classes: g = f_1 - f_2 has the prior covariance 2 K. No label depends on f_1 + f_2, which keeps its prior.

    With D = w p_1 p_2, the posterior variance of g is 2 k - 4 k^T (2 K + D^-1)^-1 k. The variance of each function is
    k - k^T (2 K + D^-1)^-1 k, and the covariance of the two functions is k^T (2 K + D^-1)^-1 k.

    Attributes
    ----------
    root : tensor of shape (n,)
        The square root of D.
    lower : tensor of shape (n, n)
        The Cholesky factor of I + 2 D^1/2 K D^1/2.
    """

    root: Tensor
    lower: Tensor

    def solve(self, b: Tensor) -> Tensor:
        """Return (2 K + D^-1)^-1 b for b of shape (n, k)."""
        root = self.root[:, None]
        return root * torch.cholesky_solve(root * b, self.lower)

    def covariance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return the covariance of both functions at rows; see `Curvature`."""
        half = torch.linalg.solve_triangular(self.lower, self.root[:, None] * K_cross, upper=False)
        lost = half.square().sum(dim=0)
        own = prior - lost
        return torch.stack([own, lost, lost, own], dim=1).reshape(-1, 2, 2)


@dataclass(frozen=True, eq=False)
class OfManyClasses(Curvature):
    """Any number of classes.

    Attributes
    ----------
    pulls : tensor of shape (c, n, n)
        E_c = (K + D_c^-1)^-1 with D_c = w p_c.
    total : tensor of shape (n, n)
        The lower Cholesky factor of the sum of the E_c.
    """

    pulls: Tensor
    total: Tensor

    def covariance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return the covariance of all functions at rows; see `Curvature`."""
        pulled = self.pulls @ K_cross
        shared = torch.linalg.solve_triangular(self.total, pulled, upper=False)
        covariance = torch.einsum("amn,bmn->nab", shared, shared)
        own = prior - torch.einsum("mn,cmn->cn", K_cross, pulled)
        covariance.diagonal(dim1=1, dim2=2).add_(own.T)
        return covariance


@dataclass(frozen=True, eq=False)
class OneVariance(Curvature):
    """One variance for all latent functions, with which predictions are cheap; exact for two classes.

    W_i is replaced by a multiple d_i of the projection onto the differences of the functions, on which the softmax
    depends. It has the same trace if d_i = w_i (1 - sum_c p_ic^2) / (c - 1). The posterior variance of each of these
    differences is then given by v = k - k^T (K + D^-1)^-1 k. The softmax does not depend on other directions.

    Attributes
    ----------
    root : tensor of shape (n,)
        The square root of d, the diagonal of D.
    lower : tensor of shape (n, n)
        The Cholesky factor of I + D^1/2 K D^1/2.
    n_classes : int
    """

    root: Tensor
    lower: Tensor
    n_classes: int

    def variance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return v at new rows, of shape (n,); the parameters are those of `covariance`."""
        half = torch.linalg.solve_triangular(self.lower, self.root[:, None] * K_cross, upper=False)
        return (prior - half.square().sum(dim=0)).clamp(min=0.0)

    def left_out_variance(self, K: Tensor, rows: Tensor) -> Tensor:
        """Return v at some rows of the fit as if each had been left out: 1 / (1 / v - d)."""
        known = self.variance(K[:, rows], K.diagonal()[rows])
        return known / (1.0 - known * self.root[rows].square()).clamp(min=torch.finfo(K.dtype).eps)

    def covariance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return v I at rows; see `Curvature`."""
        return of_one_variance(self.variance(K_cross, prior), self.n_classes)


def of_one_variance(variance: Tensor, n_classes: int) -> Tensor:
    """Return the covariances v I, of shape (n, c, c)."""
    return variance[:, None, None] * torch.eye(n_classes, dtype=variance.dtype, device=variance.device)


def one_variance(K: Tensor, log_p: Tensor, weights: Tensor) -> OneVariance:
    """Return the curvature with one variance for all latent functions; the parameters are those of `curvature`.

    This takes n^3 / 3 operations for any number of classes.
    """
    n_classes = log_p.shape[1]
    # Computed as 1 - sum_c p_c^2, this would round to 0 if one class is nearly certain.
    seen = (log_p.exp() * -torch.expm1(log_p)).sum(dim=1).clamp(min=torch.finfo(K.dtype).tiny)
    root = (weights * seen / (n_classes - 1)).sqrt()
    B = root[:, None] * K * root
    B.diagonal().add_(1.0)
    lower = torch.linalg.cholesky(B)
    log_determinant = (n_classes - 1) * 2.0 * float(lower.diagonal().log().sum())
    return OneVariance(log_determinant, root, lower, n_classes)


def curvature(K: Tensor, log_p: Tensor, weights: Tensor) -> Curvature:
    """Return the curvature at latent values with given log probabilities.

    Parameters
    ----------
    K : tensor of shape (n, n)
        The prior covariance of each latent function.
    log_p : tensor of shape (n, c)
        The log probabilities of the classes.
    weights : tensor of shape (n,)

    Notes
    -----
    O(c n^3) time and O(c n^2) memory; for two classes n^3 / 3 operations and n^2 numbers.
    """
    return of_two_classes(K, log_p, weights) if log_p.shape[1] == 2 else of_many_classes(K, log_p, weights)


def of_two_classes(K: Tensor, log_p: Tensor, weights: Tensor) -> OfTwoClasses:
    """Return the curvature of two classes; see `curvature`."""
    root = (weights.log() + log_p.sum(dim=1)).mul(0.5).exp()
    B = (2.0 * root[:, None]) * K * root
    B.diagonal().add_(1.0)
    lower = torch.linalg.cholesky(B)
    return OfTwoClasses(2.0 * float(lower.diagonal().log().sum()), root, lower)


def of_many_classes(K: Tensor, log_p: Tensor, weights: Tensor) -> OfManyClasses:
    """Return the curvature of any number of classes; see `curvature`."""
    D = (weights[:, None] * log_p.exp()).T.clamp(min=torch.finfo(K.dtype).tiny)
    pulls, logs = K.new_empty((len(D), *K.shape)), -0.5 * weights.log().sum()
    # One class at a time, so that only the result is held in memory for all classes.
    for root, pull in zip(D.sqrt(), pulls, strict=True):
        B = root[:, None] * K * root
        B.diagonal().add_(1.0)
        lower = torch.linalg.cholesky(B)
        logs = logs + lower.diagonal().log().sum()
        torch.mul(torch.cholesky_inverse(lower), root, out=pull).mul_(root[:, None])
    total = torch.linalg.cholesky(pulls.sum(dim=0))
    logs = logs + total.diagonal().log().sum()
    return OfManyClasses(2.0 * float(logs), pulls, total)

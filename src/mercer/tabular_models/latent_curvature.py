"""The curvature of the posterior of latent functions: its log determinant, and the covariance that it leaves.

Latent functions f_c, one a class, have the prior covariance K each; W is the negative Hessian of the log likelihood,
with blocks w_i (diag(p_i) - p_i p_i^T) at the rows. Of two classes only f_1 - f_2 is seen by the labels, so that one
matrix of n x n is factored; of more classes one a class and one for all (Rasmussen and Williams 2006, section 3.5).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Curvature(ABC):
    """What the labels add to the curvature of the posterior.

    Attributes
    ----------
    log_determinant : float
        log |I + K W|.
    """

    log_determinant: float

    @property
    def nbytes(self) -> int:
        """How much memory its matrices take."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    @abstractmethod
    def covariance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return the covariance of the latent functions at rows, of shape (n, c, c).

        Parameters
        ----------
        K_cross : tensor of shape (m, n)
            Between the rows of the fit and those asked for.
        prior : tensor of shape (n,)
            The prior variance at each row asked for.
        """


@dataclass(frozen=True, eq=False)
class OfTwoClasses(Curvature):
    """Two classes: g = f_1 - f_2 has the prior 2 K, and f_1 + f_2, which no label depends on, keeps its own.

    With D = w p_1 p_2 the posterior variance of g is 2 k - 4 k^T (2 K + D^-1)^-1 k, and that of either function
    k - k^T (2 K + D^-1)^-1 k; their covariance is what the first of them lost.

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
        """Return (2 K + D^-1)^-1 b, of the shape (n, k) of b."""
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
    """One variance for all latent functions, which is cheap to predict with; exact for two classes.

    W_i is replaced by d_i times the projection on what the softmax sees, the differences of the functions, of the same
    trace: d_i = w_i (1 - sum_c p_ic^2) / (c - 1). The posterior variance of every direction that is seen is then
    v = k - k^T (K + D^-1)^-1 k, and the others do not matter.

    Attributes
    ----------
    root : tensor of shape (n,)
        The square root of d.
    lower : tensor of shape (n, n)
        The Cholesky factor of I + D^1/2 K D^1/2.
    n_classes : int
    """

    root: Tensor
    lower: Tensor
    n_classes: int

    def variance(self, K_cross: Tensor, prior: Tensor) -> Tensor:
        """Return v at rows, of shape (n,); for parameters see `covariance`."""
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
    """Return the curvature with one variance for all latent functions; for parameters see `curvature`.

    n^3 / 3 for any number of classes.
    """
    n_classes = log_p.shape[1]
    # 1 - sum_c p_c^2 would be 0 where a class is nearly sure.
    seen = (log_p.exp() * -torch.expm1(log_p)).sum(dim=1).clamp(min=torch.finfo(K.dtype).tiny)
    root = (weights * seen / (n_classes - 1)).sqrt()
    B = root[:, None] * K * root
    B.diagonal().add_(1.0)
    lower = torch.linalg.cholesky(B)
    log_determinant = (n_classes - 1) * 2.0 * float(lower.diagonal().log().sum())
    return OneVariance(log_determinant, root, lower, n_classes)


def curvature(K: Tensor, log_p: Tensor, weights: Tensor) -> Curvature:
    """Return the curvature at latent values with these log probabilities.

    Parameters
    ----------
    K : tensor of shape (n, n)
    log_p : tensor of shape (n, c)
    weights : tensor of shape (n,)

    Notes
    -----
    O(c n^3) time and O(c n^2) memory; a third of n^3 and n^2 for two classes.
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
    # One class after another, so that no more than the pulls is held of all.
    for root, pull in zip(D.sqrt(), pulls, strict=True):
        B = root[:, None] * K * root
        B.diagonal().add_(1.0)
        lower = torch.linalg.cholesky(B)
        logs = logs + lower.diagonal().log().sum()
        torch.mul(torch.cholesky_inverse(lower), root, out=pull).mul_(root[:, None])
    total = torch.linalg.cholesky(pulls.sum(dim=0))
    logs = logs + total.diagonal().log().sum()
    return OfManyClasses(2.0 * float(logs), pulls, total)
